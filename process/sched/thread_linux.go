package sched

// doing is what a thread does as far as is known.
type doing uint8

const (
	unknown doing = iota
	running
	ready
	waiting
)

// thread is one thread that hasn't ended.
type thread struct {
	pid, tid int32
	state    doing
	// since is the moment from which on nothing of it was missed; its state is not known before. What its first event
	// after that shows, it has been doing since then: whatever changes that is an event.
	since uint64
	last  uint64 // ticks of its last event

	excess int64 // nanoseconds: how much longer it was told to run than the kernel counted

	// woke is a wake-up that isn't given yet, since the kernel's count of what the thread runs may begin a moment earlier.
	woke            Event
	holding, listed bool

	asked     answer
	processor int32  // where it runs
	missing   uint64 // ticks: there was no such thread any more; 0 while that isn't known
	base      Sums   // when it began to be watched
}

// tell takes what a source says of a thread.
func (w *Watcher) tell(e *told) {
	if e.kind == skipped {
		return
	}
	w.passHoles(e.time)
	tick := w.clock.ticks(e.time)
	t := w.threads[e.tid]
	fault := e.kind == MinorFault || e.kind == MajorFault
	switch {
	case fault && (t == nil || t.pid != e.pid):
		return // another process's, whose faults are told, too
	case t != nil && t.pid != e.pid && e.kind != born:
		// It has become another process's: the number was given anew, and the end of the first was lost.
		w.end(t, max(tick, t.last))
		t = nil
	case t != nil && e.kind == born && tick <= t.since:
		return // it was there when it began to be watched
	case t != nil && e.kind == born:
		w.end(t, max(tick, t.last))
		t = nil
	}
	if t == nil {
		if e.kind == Ended || w.isGone(e) {
			return
		}
		t = w.newThread(e, tick)
		if t == nil {
			return
		}
		w.takesOver(t, e, tick)
	}
	tick = max(w.moved(t, e, tick), t.last)
	w.checkLoss(t, tick)
	switch e.kind {
	case In:
		w.in(t, e, tick)
	case Preempted, Blocked, Uninterruptible, Ended:
		w.out(t, e, tick)
	case Woken, born:
		w.woken(t, e, tick)
	case MinorFault, MajorFault:
		w.runsSince(t, e.cpu, tick)
		w.give(t, Event{Time: tick, Kind: e.kind, Address: e.address, Syscall: NoSyscall, CPU: e.cpu})
	case execed:
		w.exec(t, e, tick)
	}
}

// maxThreads bounds what a process can make us keep: it is above what the kernel lets there be on most machines. Events of
// threads beyond are not given, which counts as lost.
const maxThreads = 1 << 18

func (w *Watcher) newThread(e *told, tick uint64) *thread {
	if len(w.threads) >= maxThreads {
		w.stats.Lost++
		return nil
	}
	t := &thread{pid: e.pid, tid: e.tid, since: tick, last: tick, processor: -1}
	w.threads[e.tid] = t
	w.process(e.pid).threads[e.tid] = t
	return t
}

func (w *Watcher) give(t *thread, e Event) {
	w.letGo(t, e.Time)
	t.last = max(t.last, e.Time)
	w.stats.Events++
	w.yield(int(t.tid), int(t.pid), e)
}

// checkLoss tells a thread of a loss that lies between its last event and this one.
func (w *Watcher) checkLoss(t *thread, tick uint64) {
	if end := min(w.lossEnd, tick); end > t.since {
		w.lost(t, max(end, t.last))
	}
}

func (w *Watcher) lost(t *thread, tick uint64) {
	w.give(t, Event{Time: tick, Kind: Lost, CPU: -1, Syscall: NoSyscall})
	t.state, t.since, t.asked, t.excess = unknown, tick, answer{}, 0
}

// odd is a loss that only the next event shows.
func (w *Watcher) odd(t *thread, tick uint64) {
	w.stats.Odd++
	w.lost(t, tick)
}

// has tells what a thread has been doing since it is watched, which has just become known.
func (w *Watcher) has(t *thread, kind Kind, cpu int32, state doing) {
	t.state = state
	if t.since < t.last || state == unknown {
		return
	}
	w.give(t, Event{Time: t.since, Kind: kind, CPU: cpu, Syscall: NoSyscall})
}

func (w *Watcher) runsSince(t *thread, cpu int32, tick uint64) {
	if t.state == unknown && t.since < tick {
		w.has(t, In, cpu, running)
		t.processor = cpu
	}
}

func (w *Watcher) in(t *thread, e *told, tick uint64) {
	switch t.state {
	case unknown:
		if t.since == tick {
			break
		}
		if w.source.wakeUps() {
			w.has(t, Preempted, -1, ready)
		} else if kind, state := t.asked.before(tick); state != unknown {
			w.has(t, kind, -1, state)
		}
	case running:
		if w.source.repeats() {
			return
		}
		w.odd(t, tick)
	}
	t.state, t.processor = running, e.cpu
	w.wasQueued(t, e, tick)
	w.give(t, Event{Time: tick, Kind: In, CPU: e.cpu, Syscall: NoSyscall})
}

func (w *Watcher) out(t *thread, e *told, tick uint64) {
	w.runsSince(t, e.cpu, tick)
	if t.state == ready || t.state == waiting {
		if w.source.repeats() {
			if e.kind == Ended {
				w.ended(t, tick)
			}
			return
		}
		w.odd(t, tick)
	}
	if e.kind == Ended {
		w.ended(t, tick)
		return
	}
	t.state = waiting
	if e.kind == Preempted {
		t.state = ready
	}
	w.give(t, Event{Time: tick, Kind: e.kind, CPU: e.cpu, Syscall: e.syscall, Args: e.args})
}

func (w *Watcher) woken(t *thread, e *told, tick uint64) {
	switch t.state {
	case running, ready:
		return // it was about to wait, but hadn't yet
	case unknown:
		if t.since < tick && e.kind == Woken {
			w.has(t, Blocked, -1, waiting)
		}
	}
	t.state = ready
	w.hold(t, Event{Time: tick, Kind: Woken, CPU: -1, Waker: e.waker, Syscall: NoSyscall})
}

// departed is a thread that has ended, by itself or for a new program.
type departed struct {
	pid  int32
	tick uint64
}

// isGone says whether an event is the last way of a thread that has ended: the kernel calls it dead before it has left its processor for good, and
// may take that from it meanwhile.
func (w *Watcher) isGone(e *told) bool {
	g, ok := w.gone[e.tid]
	if !ok || e.tid == e.pid {
		return false
	}
	if e.kind == born || g.pid != e.pid || w.clock.ticks(e.time) <= w.lossEnd {
		delete(w.gone, e.tid)
		return false
	}
	return true
}

// forgetGone forgets those that have left their processor long ago.
func (w *Watcher) forgetGone() {
	for tid, g := range w.gone {
		if float64(w.bound-min(g.tick, w.bound)) > w.clock.rate*1e9 {
			delete(w.gone, tid)
		}
	}
}

// exec ends all threads of a process but the one that runs a new program: it has the process's number as its own from now on.
func (w *Watcher) exec(t *thread, e *told, tick uint64) {
	for _, other := range w.process(e.pid).threads {
		if other != t {
			w.end(other, max(tick, other.last))
			w.gone[other.tid] = departed{pid: other.pid, tick: tick}
		}
	}
	if t.state != running {
		t.state, t.processor = running, e.cpu
		w.give(t, Event{Time: tick, Kind: In, CPU: e.cpu, Syscall: NoSyscall})
	}
}

// ended ends a thread of which the kernel has told that. The process's number may go on at once: a thread that begins a new program takes it.
func (w *Watcher) ended(t *thread, tick uint64) {
	w.end(t, tick)
	w.gone[t.tid] = departed{pid: t.pid, tick: tick}
}

// takesOver is for a thread whose number is that of a process whose first thread has ended: it has been running since, towards a new program, of
// which it may be told later that it begins.
func (w *Watcher) takesOver(t *thread, e *told, tick uint64) {
	g, ok := w.gone[t.tid]
	if !ok || t.tid != t.pid {
		return
	}
	delete(w.gone, t.tid)
	switch e.kind {
	case Preempted, Blocked, Uninterruptible, MinorFault, MajorFault:
		t.state, t.processor = running, e.cpu
		w.give(t, Event{Time: min(g.tick, tick), Kind: In, CPU: e.cpu, Syscall: NoSyscall})
	}
}

func (w *Watcher) end(t *thread, tick uint64) {
	w.give(t, Event{Time: tick, Kind: Ended, CPU: -1, Syscall: NoSyscall})
	delete(w.threads, t.tid)
	if p := w.processes[t.pid]; p != nil {
		delete(p.threads, t.tid) // settle looks whether any is left
	}
}
