package follow

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

// execs awaits the execs of threads that are about to replace their program, see stub/amd64's exec.go, and records the new programs from their
// entry point on.
type execs struct {
	f      *Family
	memory *ring.Memory
	cancel context.CancelFunc
	over   <-chan struct{}
	mu     sync.Mutex            // guards busy and taken
	busy   map[int]bool          // entries that are being seen to
	taken  map[int]chan struct{} // threads whose exec is awaited; closed when it isn't any more
	wg     sync.WaitGroup
}

const (
	// execPatience is how long a thread may take from being taken to its exec.
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

// AwaitExecs begins to record the programs that threads of the family replace theirs by. EndExecs ends that.
func (f *Family) AwaitExecs(ctx context.Context) {
	e := &execs{f: f, memory: f.target.Memory, busy: map[int]bool{}, taken: map[int]chan struct{}{}}
	taking, cancel := context.WithCancel(ctx)
	e.cancel, e.over = cancel, taking.Done()
	e.wg.Go(func() {
		var last time.Time
		for credit := execsAtOnce; taking.Err() == nil; {
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
	f.execs = e
}

// EndExecs takes no more threads, which go on as they see that nobody follows any more, and waits for those that it has taken.
func (f *Family) EndExecs() {
	f.target.Memory.SetFollow(false)
	f.execs.cancel()
	f.execs.wg.Wait()
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

// see follows one thread until its exec has succeeded or failed.
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
	r := t.make(pid)
	err := process.AwaitExec(ctx, pid, tid, execPatience, process.StopOptions{GoAtEntry: true, Of: who}, let,
		func(st *process.Stopped) error { return r.AtEntry(ctx, st) })
	switch {
	case err == nil:
		t.count(func(p *Counts) { p.Executed++ })
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

// take says whether nobody has taken a thread any more; the caller has from now on. A thread whose exec has failed may ask for the next one, as
// execvp(3) makes it for each folder of PATH, before whoever had taken it for the first has noticed: it is waited for. No thread is taken for
// longer than execPatience and what a stop takes.
func (e *execs) take(ctx context.Context, tid int) bool {
	patience := time.After(2 * execPatience)
	for {
		e.mu.Lock()
		taken := e.taken[tid]
		if taken == nil {
			e.taken[tid] = make(chan struct{})
		}
		e.mu.Unlock()
		if taken == nil {
			return true
		}
		select {
		case <-taken:
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
func (f *Family) asker(nspid, nstid int) (who *process.Handle, tid int) {
	own := f.target.Process
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
	for _, tid := range append([]int{nstid}, slices.Sorted(maps.Keys(target.ThreadSet(who.Pid())))...) {
		if st, err := process.StatusOf(who.Pid(), tid); err == nil && len(st.NSPIDs) > 0 && st.NSPIDs[len(st.NSPIDs)-1] == nstid {
			return who, tid
		}
	}
	who.Close()
	return nil, 0
}
