package causes

import "time"

// golang are plants in Go. What waits there is a goroutine, and its thread does something else meanwhile.
func golang() []Plant {
	plant := func(name, plant, handler string, slow time.Duration, t Truth) Plant {
		return Plant{Name: "Go: " + name, Handler: handler, Slow: slow, Truth: t, needs: need("go"), build: (*place).compileGo, start: goProgram(plant)}
	}
	return []Plant{
		plant("slow sender of a channel", "channel", "main.priceOrder", 10*ms, Truth{Path: []string{"awaitQuote"}, Kinds: waiting, States: []string{Blocked},
			WaitsFor: []string{"refreshCurve", "computeQuote"}}),
		plant("mutex held", "mutex", "main.checkAccess", 10*ms, Truth{Path: []string{"rule", "lockSlow", "Lock"}, Kinds: waiting, States: []string{Blocked}, WaitsFor: []string{"reload", "parseRule"}}),
		plant("pool of connections", "pool", "main.listUsers", 10*ms, Truth{Path: []string{"takeConnection"}, Kinds: waiting, States: []string{Blocked}, WaitsFor: []string{"exportAll"}}),
		plant("sleep in a retry loop", "retry", "main.reserveRoom", 10*ms, Truth{Path: []string{"backOff"}, Kinds: fresh, States: []string{Blocked}}),
		plant("assist of the collector", "assist", "main.buildPage", 4*ms, Truth{Path: []string{"newPart", "makeParts", "mallocgc*", "gcAssist*"}, Kinds: []string{SlowerCalls, Self, NewPath, MoreCalls},
			States: []string{CPU, Blocked, Ready}}),
		plant("latency of the scheduler", "latency", "main.readShards", 8*ms, Truth{Path: []string{"readShard", "Sleep"}, Kinds: working, States: []string{Ready, Blocked}}),
		plant("slow goroutine of a group", "waitgroup", "main.countAll", 8*ms, Truth{Path: []string{"awaitShards", "Wait"}, Kinds: waiting, States: []string{Blocked}, WaitsFor: []string{"countShard", "countSegment"}}),
		plant("writer waits for a reader", "rwmutex", "main.chargeQuota", 10*ms, Truth{Path: []string{"charge", "Lock", "lockSlow"}, Kinds: waiting, States: []string{Blocked}, WaitsFor: []string{"audit", "auditUser"}}),
		plant("select with a timeout", "select", "main.findPrice", 12*ms, Truth{Path: []string{"awaitPrice"}, Kinds: waiting, States: []string{Blocked}}),
		plant("regexp on a long text", "regexp", "main.maskMails", 3*ms, Truth{Path: []string{"regexp.*", "*regexp*"}, Kinds: append([]string{NewPath}, repeats...), States: []string{CPU}}),
		plant("fsync", "fsync", "main.storeVote", 4*ms, Truth{Path: []string{"sealVotes"}, Kinds: fresh, States: []string{Blocked, CPU}}),
		plant("runtime.GC", "collect", "main.importFile", 5*ms, Truth{Path: []string{"releaseMemory", "runtime.GC"}, Kinds: fresh, States: []string{Blocked, CPU, Ready}}),
		plant("system call outside of the poller", "syscall", "main.readGauge", 8*ms, Truth{Path: []string{"awaitGauge", "Read", "read"}, Kinds: waiting, States: []string{Blocked}, WaitsFor: []string{"calibrate", "calibratePoint"}}),
		plant("sync.Once of another", "once", "main.renderInvoice", 8*ms, Truth{Path: []string{"currentRates", "*Once*", "lockSlow", "Lock"}, Kinds: waiting, States: []string{Blocked}, WaitsFor: []string{"loadRates", "loadRate"}}),
		plant("map grows", "mapgrow", "main.countVisitor", 3*ms, Truth{Path: []string{"remember", "*rehash*", "*grow*", "mapassign*"}, Kinds: append([]string{NewPath}, repeats...), States: []string{CPU, Ready}}),
		plant("panics recovered", "panic", "main.parseBatch", 3*ms, Truth{Path: []string{"parseLine", "*panic*", "*recover*"}, Kinds: append([]string{NewPath}, repeats...), States: []string{CPU}}),
		plant("text put together piece by piece", "concat", "main.joinNames", 3*ms, Truth{Path: []string{"appendName", "concatstring*"}, Kinds: repeats, States: []string{CPU, Ready}}),
		plant("large reply", "encode", "main.sendReport", 4*ms, Truth{Path: []string{"encodeRow"}, Kinds: repeats, States: []string{CPU}}),
	}
}

// python are plants in the interpreter, whose own functions are recorded, not those of scripts.
func python() []Plant {
	interpreter := [][]string{{"/usr/bin/python3"}}
	plant := func(name, plant string, slow time.Duration, t Truth) Plant {
		return Plant{Name: "Python: " + name, Handler: "PyEval_EvalCode", Slow: slow, Truth: t, needs: interpreter, start: pythonProgram(plant)}
	}
	return []Plant{
		plant("lock held by another thread", "lock", 12*ms, Truth{Path: []string{"PyThread_acquire_lock*", "*sem_*wait*"}, Kinds: waiting, States: []string{Blocked}}),
		plant("interpreter lock", "gil", 12*ms, Truth{Path: []string{"PyEval_RestoreThread", "PyEval_AcquireThread", "*cond_*wait*"}, Kinds: waiting, States: []string{Blocked}}),
		plant("hash collision", "collision", 4*ms, Truth{Path: []string{"PyDict_*", "_PyDict_*", "_Py_dict_*", "PyObject_SetItem", "PyObject_RichCompare*", "PyLong_*"}, Kinds: append([]string{NewPath}, repeats...), States: []string{CPU}}),
		plant("large number printed", "digits", 4*ms, Truth{Path: []string{"PyObject_Str", "_PyLong_Format*"}, Kinds: repeats, States: []string{CPU}}),
		plant("sleep in a retry loop", "retry", 12*ms, Truth{Path: []string{"*clock_nanosleep*", "*nanosleep*", "*select*", "_PyTime_*"}, Kinds: fresh, States: []string{Blocked}}),
		plant("collection of all generations", "collect", 4*ms, Truth{Path: []string{"*gc*", "*GC*", "*vectorcall*", "*Vectorcall*", "_PyEval_EvalFrameDefault"}, Kinds: append([]string{NewPath}, repeats...), States: []string{CPU}}),
		plant("large JSON", "json", 4*ms, Truth{Path: []string{"*vectorcall*", "*Vectorcall*", "PyObject_Call*", "_PyEval_EvalFrameDefault", "PyUnicode*", "_PyUnicode*", "PyDict*", "PyIter*", "PyObject_*", "PyMapping_*"}, Kinds: append([]string{NewPath}, repeats...), States: []string{CPU}}),
		plant("import within a request", "import", 8*ms, Truth{Path: []string{"PyImport_ImportModuleLevelObject", "PyImport_*"}, Kinds: fresh, States: []string{CPU}}),
		plant("child waited for", "child", 8*ms, Truth{Path: []string{"*poll*", "*wait4*", "*waitpid*", "*read*", "PyEval_RestoreThread", "_PyEval_EvalFrameDefault", "PyObject_Call*", "_PyObject_*", "*vfork*"}, Kinds: fresh, States: []string{Blocked}}),
		plant("query of SQLite", "sqlite", 4*ms, Truth{Path: []string{"sqlite3_step"}, Kinds: append([]string{NewPath}, repeats...), States: []string{CPU}}),
		plant("slow peer", "socket", 12*ms, Truth{Path: []string{"*recv*"}, Kinds: waiting, States: []string{Blocked}}),
		plant("thread joined", "join", 8*ms, Truth{Path: []string{"*sem_*wait*", "PyThread_acquire_lock*", "*futex*"}, Kinds: waiting, States: []string{Blocked}}),
		plant("deep copy", "deepcopy", 4*ms, Truth{Path: []string{"*vectorcall*", "*Vectorcall*", "PyObject_Call*", "_PyEval_EvalFrameDefault", "PyObject_*", "PyDict*", "_PyObject_*"}, Kinds: append([]string{NewPath}, repeats...), States: []string{CPU}}),
		plant("decompression", "zlib", 4*ms, Truth{Path: []string{"inflate*"}, Kinds: append([]string{NewPath}, repeats...), States: []string{CPU}}),
		plant("backtracking", "regex", 4*ms, Truth{Path: []string{"*sre*", "*pattern*", "PyObject_Vectorcall*", "*vectorcall*", "*python3*"}, Kinds: repeats, States: []string{CPU}}),
	}
}

// Controls returns programs without any cause.
func Controls() []Plant {
	return []Plant{
		native("exponential work", "control_exponential.c", "handle_any", 0, Truth{}),
		native("five stages", "control_stages.c", "transfer_money", 0, Truth{}),
		native("a thread behind a socket", "control_echo.c", "forward_request", 0, Truth{}),
		native("a number of lookups", "control_lookups.c", "read_values", 0, Truth{}),
		{Name: "Go", Handler: "main.handleAny", needs: need("go"), build: (*place).compileGo, start: goProgram("control")},
		{Name: "Python", Handler: "PyEval_EvalCode", needs: [][]string{{"/usr/bin/python3"}}, start: pythonProgram("control")},
		quietRedis(),
		quietNginx(),
		native("requests of two kinds", "control_two_kinds.c", "tally", 0, Truth{}),
		native("sizes with a heavy tail", "control_heavy_tail.c", "fetch_mailbox", 0, Truth{}),
		native("a slow drift", "control_drift.c", "add_entry", 0, Truth{}),
		native("a lock held for microseconds", "control_short_lock.c", "book_trip", 0, Truth{}),
		native("timers with jitter", "control_timers.c", "poll_sensors", 0, Truth{}),
		native("nice processes beside it", "control_nice_hogs.c", "answer_bid", 0, Truth{}),
	}
}
