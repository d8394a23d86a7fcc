package recorder

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/target"
)

// execs watches threads that are about to replace their program, see probe's exec.go, and records the new programs from their
// entry point on.
type execs struct {
	f      *family
	memory *ring.Memory
	cancel context.CancelFunc
	over   <-chan struct{}
	mu     sync.Mutex            // guards busy and taken
	busy   map[int]bool          // entries that are being seen to
	taken  map[int]chan struct{} // threads that are being watched; closed when they aren't any more
	wg     sync.WaitGroup
}

const (
	// execPatience is how long a thread may take from being watched to its exec.
	execPatience = 2 * time.Second
	// execsWait is how soon it is seen that recording has ended.
	execsWait = 50 * time.Millisecond
	// refusedPause is for how long an entry isn't looked at in which a stranger was named, idlePause the same for a thread that has
	// called no execve within execPatience.
	refusedPause = 100 * time.Millisecond
	idlePause    = 5 * time.Second
	// execsAtOnce is how often requests are looked at without a rest of execsRest in between.
	execsAtOnce = 100
	execsRest   = time.Millisecond
)

func (f *family) watchExecs(ctx context.Context) *execs {
	e := &execs{f: f, memory: f.d.r.s.Memory, busy: map[int]bool{}, taken: map[int]chan struct{}{}}
	watching, cancel := context.WithCancel(ctx)
	e.cancel, e.over = cancel, watching.Done()
	e.wg.Go(func() {
		var last time.Time
		for credit := execsAtOnce; watching.Err() == nil; {
			now := time.Now()
			credit = min(credit+int(now.Sub(last)/execsRest), execsAtOnce)
			if last = now; credit == 0 {
				time.Sleep(execsRest)
			}
			credit = max(credit-1, 0)
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
	who, tid := e.f.asker(nspid, nstid)
	if who == nil {
		let()
		e.pause(ctx, refusedPause)
		return
	}
	defer who.Close()
	if !e.take(ctx, tid) { // somebody asks in its name
		let()
		e.pause(ctx, refusedPause)
		return
	}
	defer e.giveBack(tid)
	pid := who.Pid()
	t := e.f.tree
	t.expect(pid)
	defer t.came(pid)
	r := t.recording(pid)
	err := process.AwaitExec(ctx, pid, tid, execPatience, process.StopOptions{GoAtEntry: true, Of: who}, let,
		func(st *process.Stopped) error {
			r.s = target.New(st.Process())
			err := r.atEntry(ctx, st)
			if err != nil {
				err = errors.Join(err, r.s.TakeBack(st))
				r.s.Process = nil // AwaitExec closes it
				r.s.Close()
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
		if why := syscall.Errno(0); errors.Is(err, process.ErrNoExec) && !errors.As(err, &why) {
			e.pause(ctx, idlePause) // it has asked, and then called nothing of the kind
		}
	default:
		t.pass(pid, err)
	}
}

// take says whether nobody watches a thread any more, who does so from now on. A thread whose exec has failed may ask for the next one, as
// execvp(3) makes it for each folder of PATH, before whoever has watched the first has noticed: it is waited for. No thread is watched for
// longer than execPatience and what a stop takes.
func (e *execs) take(ctx context.Context, tid int) bool {
	patience := time.After(2 * execPatience)
	for {
		e.mu.Lock()
		watched := e.taken[tid]
		if watched == nil {
			e.taken[tid] = make(chan struct{})
		}
		e.mu.Unlock()
		if watched == nil {
			return true
		}
		select {
		case <-watched:
		case <-ctx.Done():
			return false
		case <-e.over:
			return false
		case <-patience:
			return false
		}
	}
}

func (e *execs) giveBack(tid int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.taken[tid])
	delete(e.taken, tid)
}

// pause keeps an entry from being seen to for a while: who asks in vain is not to keep the recorder busy.
func (e *execs) pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-e.over:
	case <-time.After(d):
	}
}

// asker finds the thread that asks, by its IDs as it sees them itself: nil unless its process is of the family. The caller is to close who.
func (f *family) asker(nspid, nstid int) (who *process.Handle, tid int) {
	own := f.d.r.s.Process
	if nspid == f.inner {
		who, _ = own.Hold() // else the first process of another namespace may have that ID
	}
	if who == nil {
		f.mu.Lock()
		_, found, v := f.find(nspid)
		f.mu.Unlock()
		if v != related {
			return nil, 0
		}
		who = found
	}
	for _, tid := range append([]int{nstid}, slices.Sorted(maps.Keys(tasksOf(who.Pid())))...) {
		if st, err := process.StatusOf(who.Pid(), tid); err == nil && len(st.NSPIDs) > 0 && st.NSPIDs[len(st.NSPIDs)-1] == nstid {
			return who, tid
		}
	}
	who.Close()
	return nil, 0
}
