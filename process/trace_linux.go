package process

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Tracing is a command that runs under our eyes from its entry point to its end. It is valid only inside the function
// given to Trace, and only on that function's goroutine.
//
// It is for commands of our own, not for processes that others rely on: the command dies if we do.
type Tracing struct {
	p     *Process
	ended bool
	exit  ExitStatus

	known     map[int]bool // threads and processes that have stopped once
	unclaimed map[int]bool // new processes that are stopped until their maker has told what they are
	queued    []TraceStop
}

// traceOptions are those of a command of our own.
const traceOptions = attachOptions | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_EXITKILL

// Trace starts a command as Launch does and calls fn with its first thread stopped at the entry point. fn lets threads go
// on by Continue and Step and gets their stops from Wait, until that says that the command has ended. If fn fails the
// command is killed. The errors are those of Launch and fn.
func Trace(ctx context.Context, cmd Command, fn func(*Tracing) error) (ExitStatus, error) {
	var tr *Tracing
	l, err := launchFrom(ctx, hasChildren, cmd, StopOptions{}, func(s *Stopped) error {
		pid := s.p.pid
		if err := setOptions(pid, traceOptions); err != nil {
			return fmt.Errorf("process %d: set options: %w", pid, err)
		}
		tr = &Tracing{p: s.p, known: map[int]bool{pid: true}, unclaimed: map[int]bool{}}
		err := fn(tr)
		// The command is not to be let go: it has ended, or is killed.
		s.leftover = true
		return err
	})
	if err != nil && !(errors.Is(err, ErrEnded) && l != nil) {
		return ExitStatus{}, err
	}
	if tr == nil || !tr.ended {
		status, werr := l.Wait()
		return status, errors.Join(err, werr)
	}
	return tr.exit, errors.Join(l.child.Release(), l.Process.Close())
}

// hasChildren says whether this OS thread is the main one or has made a process that was not waited for yet: Wait would take
// that process's end from whoever waits for it.
func hasChildren() bool {
	if isMainThread() {
		return true
	}
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT|unix.WALL|unix.WNOTHREAD, nil)
	return err != unix.ECHILD
}

// Process returns the command's process.
func (t *Tracing) Process() *Process { return t.p }

// Wait waits until a thread stops. The error wraps ErrEnded when the command has ended.
func (t *Tracing) Wait() (TraceStop, error) {
	for {
		if len(t.queued) > 0 {
			s := t.queued[0]
			t.queued = t.queued[1:]
			return s, nil
		}
		if t.ended {
			return TraceStop{}, fmt.Errorf("process %d: %w", t.p.pid, ErrEnded)
		}
		var status unix.WaitStatus
		// Other children of ours are not to be taken: this OS thread has none but the command (hasChildren).
		tid, err := unix.Wait4(-1, &status, unix.WALL|unix.WNOTHREAD, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return TraceStop{}, fmt.Errorf("process %d: wait: %w", t.p.pid, err)
		}
		if s, ok := t.sort(tid, status); ok {
			return s, nil
		}
	}
}

// sort makes a stop of a wait status, false when there is nothing to tell.
func (t *Tracing) sort(tid int, status unix.WaitStatus) (TraceStop, bool) {
	s := TraceStop{TID: tid}
	if status.Exited() || status.Signaled() {
		delete(t.known, tid)
		if s.Kind = TraceEnded; tid == t.p.pid {
			t.ended, t.exit = true, ExitStatus{Code: max(0, status.ExitStatus())}
			if status.Signaled() {
				t.exit = ExitStatus{Signal: int(status.Signal())}
			}
		}
		return s, true
	}
	event, signal := int(status)>>16&0xff, int(status)>>8&0xff
	switch event {
	case 0:
		s.Signal = signal
		if info, err := getSigInfo(tid); err == nil {
			s.Code = info.code
		}
		return s, true
	case unix.PTRACE_EVENT_STOP:
		return t.sortStop(s, signal)
	case unix.PTRACE_EVENT_EXEC:
		s.Kind = TraceExec
	case unix.PTRACE_EVENT_FORK:
		return t.made(s, TraceChild), true
	case unix.PTRACE_EVENT_VFORK, unix.PTRACE_EVENT_CLONE:
		return t.made(s, TraceGuest), true
	default:
		s.Kind = TraceOther
	}
	return s, true
}

// sortStop sorts the first stop of a new thread from that of all threads by a signal such as SIGSTOP.
func (t *Tracing) sortStop(s TraceStop, signal int) (TraceStop, bool) {
	switch {
	case !t.known[s.TID]:
		t.known[s.TID] = true
		if unix.Tgkill(t.p.pid, s.TID, 0) == nil {
			s.Kind = TraceBorn
			return s, true
		}
		t.unclaimed[s.TID] = true
		return s, false
	case signal == int(unix.SIGTRAP):
		s.Kind = TraceOther
		return s, true
	}
	// It stays stopped until SIGCONT.
	_ = ptrace(unix.PTRACE_LISTEN, s.TID, 0, 0)
	return s, false
}

// made returns the stop of the process that a thread has made, before the thread's own: as long as that is stopped, the
// memory of both is the same. If it was a thread, or is gone, the thread's own stop is returned.
func (t *Tracing) made(s TraceStop, kind TraceKind) TraceStop {
	s.Kind = TraceOther
	message, err := eventMessage(s.TID)
	made := int(message)
	if err != nil || unix.Tgkill(t.p.pid, made, 0) == nil {
		return s
	}
	if !t.unclaimed[made] && !t.awaitFirstStop(made) {
		return s
	}
	delete(t.unclaimed, made)
	t.queued = append(t.queued, s)
	return TraceStop{TID: made, Kind: kind}
}

// awaitFirstStop waits until a new process is stopped, and says whether it does.
func (t *Tracing) awaitFirstStop(tid int) bool {
	for {
		var status unix.WaitStatus
		_, err := unix.Wait4(tid, &status, unix.WALL|unix.WNOTHREAD, nil)
		if err == unix.EINTR {
			continue
		}
		t.known[tid] = err == nil && status.Stopped()
		return t.known[tid]
	}
}

// Continue lets a thread that is stopped go on and delivers a signal, 0 for none.
func (t *Tracing) Continue(tid, signal int) error {
	return t.order("continue", tid, ptrace(unix.PTRACE_CONT, tid, 0, uintptr(signal)))
}

// Step lets a thread that is stopped carry out one instruction, or enter the handler of a signal that is delivered.
func (t *Tracing) Step(tid, signal int) error {
	return t.order("step", tid, ptrace(unix.PTRACE_SINGLESTEP, tid, 0, uintptr(signal)))
}

// Detach lets a thread go for good.
func (t *Tracing) Detach(tid int) error {
	delete(t.known, tid)
	return t.order("detach", tid, detach(tid, 0))
}

// Regs returns the registers of a thread that is stopped.
func (t *Tracing) Regs(tid int) (Regs, error) {
	r, err := getRegs(tid)
	return r, t.order("read registers", tid, err)
}

// SetRegs changes the registers of a thread that is stopped.
func (t *Tracing) SetRegs(tid int, r Regs) error {
	return t.order("write registers", tid, setRegs(tid, r))
}

// PutByte changes one byte in the memory of any process that Wait has told of.
func (t *Tracing) PutByte(tid int, addr uint64, b byte) error {
	var word [8]byte
	at := addr &^ 7 // lies in one page
	if _, err := ptracePointer(unix.PTRACE_PEEKDATA, tid, uintptr(at), unsafe.Pointer(&word)); err != nil {
		return t.order("read memory", tid, err)
	}
	word[addr-at] = b
	return t.order("write memory", tid, ptrace(unix.PTRACE_POKEDATA, tid, uintptr(at), uintptr(binary.NativeEndian.Uint64(word[:]))))
}

// order makes the error of a request: ErrReleased for a thread that was killed meanwhile.
func (t *Tracing) order(doing string, tid int, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, unix.ESRCH) {
		err = ErrReleased
	}
	return fmt.Errorf("process %d: thread %d: %s: %w", t.p.pid, tid, doing, err)
}
