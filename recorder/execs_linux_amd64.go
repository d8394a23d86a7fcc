package recorder

import (
	"context"
	"errors"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// execs watches threads that are about to replace their program, see probe's exec.go, and records the new programs from their
// entry point on.
type execs struct {
	f      *family
	memory *ring.Memory
	cancel context.CancelFunc
	mu     sync.Mutex
	busy   map[int]bool // entries that are being seen to
	wg     sync.WaitGroup
}

const (
	// execPatience is how long a thread may take from being watched to its exec.
	execPatience = 2 * time.Second
	// execsWait is how soon it is seen that recording has ended.
	execsWait = 50 * time.Millisecond
)

func (f *family) watchExecs(ctx context.Context) *execs {
	e := &execs{f: f, memory: f.d.r.s.memory, busy: map[int]bool{}}
	watching, cancel := context.WithCancel(ctx)
	e.cancel = cancel
	e.wg.Go(func() {
		for watching.Err() == nil {
			seen := e.memory.Execs()
			e.memory.EachExec(func(i, nspid, nstid int) { e.begin(ctx, i, nspid, nstid) })
			e.memory.WaitExecs(seen, execsWait)
		}
	})
	return e
}

// end begins to watch no more threads, which go on as they see that nobody follows any more, and waits for those it watches.
func (e *execs) end() {
	e.cancel()
	e.wg.Wait()
}

// begin sees to entry i, unless that is being done.
func (e *execs) begin(ctx context.Context, i, nspid, nstid int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.busy[i] {
		return
	}
	e.busy[i] = true
	e.wg.Go(func() {
		e.see(ctx, i, nspid, nstid)
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.busy, i)
	})
}

// see watches one thread until its exec has succeeded or failed.
func (e *execs) see(ctx context.Context, i, nspid, nstid int) {
	let := sync.OnceFunc(func() { e.memory.LetExec(i) })
	defer let() // whatever comes, the thread is not to wait for us
	pid, tid := e.f.outer(nspid, nstid)
	t := e.f.tree
	t.expect(pid)
	defer t.came(pid)
	r := t.recording(pid)
	err := process.AwaitExec(ctx, pid, tid, execPatience, process.StopOptions{GoAtEntry: true}, let,
		func(st *process.Stopped) error {
			r.s = &session{p: st.Process(), fd: -1}
			err := r.atEntry(ctx, st)
			if err != nil {
				err = errors.Join(err, r.s.takeBack(st))
				r.s.p = nil // AwaitExec closes it
				r.s.close()
			}
			return err
		})
	switch {
	case err == nil:
		t.count(func(p *Processes) { p.Executed++ })
		t.enter(pid, r)
		t.wg.Go(func() { t.run(pid, r) })
	case !isRunning(pid):
		e.memory.FreeExec(i)
	case errors.Is(err, process.ErrNoExec) || errors.Is(err, process.ErrNoProcess) || ctx.Err() != nil:
	default:
		t.pass(pid, err)
	}
}

// takeBack undoes in a process that stands what was done to it, which may be anything up to all that recording takes.
func (s *session) takeBack(st *process.Stopped) error {
	if s.memory == nil || s.rt.Ring == 0 {
		return nil // the mapping of arenas undoes itself
	}
	w, err := prepareUndo(s.p, s.recovery())
	if err != nil {
		return err
	}
	w.ring, w.loose = span{s.rt.Ring, s.size}, s.loose
	_, err = w.in(st)
	return err
}

// outer translates a thread's IDs from the target's namespace.
func (f *family) outer(nspid, nstid int) (pid, tid int) {
	own := f.d.r.s.p.Pid()
	switch {
	case f.d.sameNS:
		return nspid, nstid
	case nspid == f.inner:
		pid = own
	default:
		pid = inNamespaceOf(own, nspid)
	}
	for tid := range tasksOf(pid) {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(tid) + "/status")
		if err != nil {
			continue
		}
		if st, err := process.ParseStatus(text); err == nil && len(st.NSPIDs) > 0 && st.NSPIDs[len(st.NSPIDs)-1] == nstid {
			return pid, tid
		}
	}
	return pid, pid
}
