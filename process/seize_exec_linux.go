package process

import "time"

// execPatience is how long threads are seized before it is looked whether an exec holds that up.
const execPatience = 20 * time.Millisecond

// letExecsEnd is to be called before threads are seized, and what it returns behind that. A thread that replaces the program ends all others,
// and waits until those are gone. One that is traced is gone only when its tracer has collected its end. To seize another thread meanwhile takes
// until the exec is over (both hold cred_guard_mutex: fs/exec.c, de_thread; kernel/ptrace.c, ptrace_attach). So its tracer would wait for ever, and
// the program with it. Any thread of the tracer's process may collect the end.
func (s *Stopped) letExecsEnd() (seized func()) {
	over, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for {
			select {
			case <-over:
				return
			case <-time.After(execPatience):
			}
			s.p.collectEnds()
		}
	}()
	return func() {
		close(over)
		<-gone
	}
}

// collectEnds collects the ends of the process's threads that are traced, but not the leader's: whoever has started it may wait for that.
func (p *Process) collectEnds() {
	tids, err := taskIDs(p.pid)
	if err != nil {
		return // it has ended
	}
	for _, tid := range tids {
		if tid == p.pid {
			continue
		}
		if r, ok, err := peek(tid); err == nil && ok && r.exited {
			reap(tid)
		}
	}
}
