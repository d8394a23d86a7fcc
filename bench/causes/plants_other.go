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
	}
}
