package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// settle waits until a thread that was told to stop stands in a
// PTRACE_EVENT_STOP: there, and only there, nothing is under way that belongs
// to the kernel. From any other stop the thread is sent on with a new order to
// stop, which it obeys before it runs a single instruction: a signal that was
// being delivered reaches its handler, a system call that reported an event ends.
func (s *Stopped) settle(t *Thread, deadline time.Time) error {
	return s.await(t, deadline, t.inEventStop)
}

// inEventStop is settle's judge of what a thread reports.
func (t *Thread) inEventStop(r report) (bool, error) {
	if r.event == unix.PTRACE_EVENT_STOP {
		t.groupStop = r.signal != int(unix.SIGTRAP)
		return true, nil
	}
	return false, t.s.sendOn(t, r)
}

// sendOn lets a thread finish what it reported and stop again at once.
func (s *Stopped) sendOn(t *Thread, r report) error {
	signal := 0
	switch r.event {
	case 0:
		signal = r.signal
		if signal > 64 { // a system-call stop, see PTRACE_O_TRACESYSGOOD
			signal = 0
		}
	case unix.PTRACE_EVENT_CLONE, unix.PTRACE_EVENT_FORK, unix.PTRACE_EVENT_VFORK:
		if child, err := eventMessage(t.TID); err == nil {
			s.adopt(int(child))
		}
	case unix.PTRACE_EVENT_EXEC:
		s.execed = true
		takeExec(t.TID)
	}
	t.ordered = true
	_ = interrupt(t.TID)
	if err := resume(t.TID, signal); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("process %d: thread %d: continue: %w", s.p.pid, t.TID, err)
	}
	return nil
}

// adopt takes note of a thread born to a seized one; the kernel has seized it
// as well. A process born so (clone without CLONE_THREAD and with a signal
// other than SIGCHLD) is none of ours and is let go.
func (s *Stopped) adopt(tid int) {
	if s.byTID[tid] != nil {
		return
	}
	if _, err := os.Stat(taskPath(s.p.pid, tid, "stat")); err == nil {
		s.add(tid).ordered = true // by the kernel
		return
	}
	stranger := &Thread{TID: tid, s: s}
	if s.settle(stranger, time.Now().Add(s.opts.timeout())) != nil || stranger.stopped && detach(tid, 0) != nil {
		s.leftover = true
	}
}

// await looks for t's reports until judge says that the thread has stopped as
// wanted; judge sends it on otherwise. A thread that ended is marked, no error.
func (s *Stopped) await(t *Thread, deadline time.Time, judge func(report) (bool, error)) error {
	for tries := 0; ; tries++ {
		told, err := s.look(t, judge)
		switch {
		case err != nil || t.stopped || t.ended:
			return err
		case told:
			tries = 0
			continue
		}
		if tries&15 == 15 {
			if over, err := s.overdue(t, deadline); err != nil || over {
				return err
			}
		}
		pause(tries)
	}
}

// look takes what t has reported, if it has (told): afterwards it is stopped, ended, or sent on by judge.
func (s *Stopped) look(t *Thread, judge func(report) (bool, error)) (told bool, err error) {
	t.stopped = false
	r, ok, err := peek(t.TID)
	switch {
	case errors.Is(err, unix.ECHILD):
		t.ended = true
	case err != nil:
		return false, fmt.Errorf("process %d: wait for thread %d: %w", s.p.pid, t.TID, err)
	case ok && r.exited:
		t.markEnded()
	case ok:
		stopped, err := judge(r)
		if err != nil {
			return true, err
		}
		if stopped {
			t.stopped, t.haveRegs, t.ordered = true, false, false
		}
	default:
		return false, nil
	}
	return true, nil
}

// overdue says whether waiting for t is over since it has ended unseen, and returns
// an error when it has lasted long enough.
func (s *Stopped) overdue(t *Thread, deadline time.Time) (over bool, err error) {
	if err := s.ctx.Err(); err != nil {
		return false, fmt.Errorf("process %d: stop: %w", s.p.pid, err)
	}
	st, err := readStat(s.p.pid, t.TID)
	if err == nil && st.ended() {
		// As long as other threads live, the end of the leader is not reported.
		if r, ok, err := peek(t.TID); err != nil || ok && r.exited {
			return false, nil // await sees it next
		}
		t.stopped, t.ended, s.leftover = false, true, true
		return true, nil
	}
	if time.Now().After(deadline) || s.patience.spent(st.state) {
		return false, s.timeoutError(t.TID)
	}
	return false, nil
}

// pause gives the processor to others for as long as a wait has lasted so far
// makes sensible: a thread that runs stops within microseconds.
func pause(tries int) {
	switch {
	case tries < 20:
		_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	case tries < 100:
		sleep(20 * time.Microsecond)
	default:
		sleep(500 * time.Microsecond)
	}
}

func sleep(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&ts, nil) // being woken early does no harm
}

func (s *Stopped) timeoutError(tid int) error {
	e := &StopTimeoutError{PID: s.p.pid, TID: tid, Syscall: -1, After: s.opts.timeout().String()}
	if st, err := readStat(s.p.pid, tid); err == nil {
		e.Name, e.State = st.name, st.state
	}
	if text, err := os.ReadFile(taskPath(s.p.pid, tid, "wchan")); err == nil {
		e.Wchan = string(text)
	}
	if text, err := os.ReadFile(taskPath(s.p.pid, tid, "syscall")); err == nil {
		word, _, _ := strings.Cut(string(text), " ")
		if n, err := strconv.Atoi(word); err == nil {
			e.Syscall = n
		}
	}
	return e
}
