package process

import "time"

// lateGrace is how long a thread that was told to stop, and only wants for a processor, is waited for at least when its stop has been given up.
const lateGrace = 2 * time.Second

// letGoLate lets go of the threads that were told to stop and hadn't when the stop was given up, each as it stops; all others run meanwhile.
// The kernel doesn't take an order back. If the tracer ended now, a thread would find that it was told something and not what: its
// epoll_wait, and whatever else stops end with EINTR, would end so, and nobody would put that right (see keepRestartable).
//
// They are waited for until s.until, or until s.ctx has ended; those that don't sleep uninterruptibly for lateGrace in any case. What is left then
// is let go by the tracer's end.
func (s *Stopped) letGoLate() {
	grace := time.Now().Add(lateGrace)
	for tries := 0; ; tries++ {
		waits, told := false, false
		for i := 0; i < len(s.threads); i++ { // what isn't stopped may make others
			t := s.threads[i]
			if !t.ordered || t.ended {
				continue
			}
			some, err := s.look(t, t.inEventStop)
			told = told || some
			switch {
			case t.stopped:
				t.keepOnRelease()
				s.rememberRestart(t)
				t.stopped = true
				t.letGo()
			case t.ended:
				s.leftover = true // by an exec, it may be: then it stands, with the leader's ID
			case err != nil, !some && tries&15 == 15 && s.leaves(t, grace):
				t.ordered, s.leftover = false, true
			default:
				waits = true
			}
		}
		if !waits {
			return
		}
		if told {
			tries = 0
		}
		pause(tries)
	}
}

// leaves says whether a thread that doesn't stop is left to the tracer's end.
func (s *Stopped) leaves(t *Thread, grace time.Time) bool {
	// What the tracer's end is to let go may be what an exec waits for.
	patient := s.ctx.Err() == nil && !s.leftover && time.Now().Before(s.until)
	st, err := readStat(s.p.pid, t.TID)
	switch {
	case err != nil || st.ended():
		t.ended = true // a leader's end isn't told while others live
		return true
	case st.state == 'D':
		return !patient
	}
	return !patient && time.Now().After(grace)
}
