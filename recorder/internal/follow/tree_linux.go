package follow

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/refusal"
	"github.com/callreel/callreel/recorder/internal/target"
)

// Tree is all recordings that go into one reel: that of the process it began with, and those of the programs that processes below it
// were replaced by. Each has rings of its own.
type Tree struct {
	make   func(pid int) Recording
	notice func(format string, args ...any)
	ctx    context.Context

	mu     sync.Mutex // guards what follows
	at     map[int]Recording
	coming map[int]int    // processes that are being taken in, or awaited for that
	passed map[int]string // the programs of those that can't be
	// mostPassed is at how many of these those that have ended are looked for.
	mostPassed int
	failed     int
	took       Counts
	err        error
	errs       int
	ended      bool

	wg sync.WaitGroup
}

// Recording is that of one program. Its methods but Run are called one at a time.
type Recording interface {
	// Attach does everything up to the first event in a process that runs. ErrNotWanted says that there is nothing to record in it.
	Attach(ctx context.Context, who *process.Handle) error
	// AtEntry does so in one that stands where its program begins. If it fails the process is as it was.
	AtEntry(ctx context.Context, st *process.Stopped) error
	// Run records until the program ends, or ctx does, and leaves the process.
	Run(ctx context.Context) error
	// Close frees what the recording has of the process. It comes once, last.
	Close()
}

// Counts is what came of processes that were followed.
type Counts struct {
	Forked     int // children that were recorded with their parent's program
	Executed   int // programs that were recorded from their entry point on
	Late       int // programs that were recorded some time after they had begun
	Unrecorded int // programs that could not be recorded
}

// ErrNotWanted: nothing of a program is chosen, nor can it be followed to what is.
var ErrNotWanted = errors.New("nothing of it is chosen")

// NewTree returns a tree that makes recordings of programs, which processes were replaced by, and tells what a user should know.
func NewTree(make func(pid int) Recording, notice func(format string, args ...any)) *Tree {
	return &Tree{make: make, notice: notice, at: map[int]Recording{}, coming: map[int]int{}, passed: map[int]string{}, mostPassed: fewPassed}
}

// Start begins with the first process, which is being recorded by first. Programs are recorded until ctx ends.
func (t *Tree) Start(ctx context.Context, pid int, first Recording) {
	t.ctx = ctx
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at[pid] = first
}

func (t *Tree) count(f func(p *Counts)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&t.took)
}

// replaced says that a process has left its recording: it has ended, or runs another program by now.
func (t *Tree) replaced(p *process.Process, r Recording) {
	t.mu.Lock()
	if t.at[p.Pid()] == r {
		delete(t.at, p.Pid())
	}
	t.mu.Unlock()
	if who, err := p.Hold(); err == nil {
		t.late(who)
	}
}

// late takes a process in that runs a program nobody has waited for. It takes who over.
func (t *Tree) late(who *process.Handle) {
	t.mu.Lock()
	defer t.mu.Unlock()
	pid := who.Pid()
	if t.ended || t.ctx.Err() != nil || t.at[pid] != nil || t.coming[pid] > 0 || t.hasPassed(pid) || !isRunning(pid) || !who.Alive() {
		who.Close()
		return
	}
	t.coming[pid]++
	t.wg.Go(func() {
		defer t.came(pid)
		defer who.Close()
		if err := t.attach(who); err != nil {
			t.pass(pid, err)
		}
	})
}

// expect says that somebody sees to a process, until came is called.
func (t *Tree) expect(pid int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.coming[pid]++
}

// comes says whether somebody sees to a process.
func (t *Tree) comes(pid int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.coming[pid] > 0
}

// enter says whose recording a process is in.
func (t *Tree) enter(pid int, r Recording) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at[pid] = r
}

func (t *Tree) came(pid int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.coming[pid]--; t.coming[pid] == 0 {
		delete(t.coming, pid)
	}
}

// pass leaves a process alone. What becomes of its children is another matter.
func (t *Tree) pass(pid int, err error) {
	const most = 5
	t.mu.Lock()
	if len(t.passed) >= t.mostPassed {
		maps.DeleteFunc(t.passed, func(pid int, program string) bool { return programOf(pid) != program })
		t.mostPassed = max(fewPassed, 2*len(t.passed))
	}
	t.passed[pid] = programOf(pid)
	notice := false
	if isRunning(pid) && t.ctx.Err() == nil && !errors.Is(err, ErrNotWanted) && !errors.Is(err, process.ErrNoProcess) {
		t.failed++
		notice = t.failed <= most
	}
	t.mu.Unlock()
	if notice {
		t.notice("a program that was started is not recorded: %v", err)
	}
}

// fewPassed is of how many processes at least it is known that they are left alone, be they still there or not.
const fewPassed = 1000

// attach records a running process until it ends. A program that has only just begun isn't ready for that.
func (t *Tree) attach(who *process.Handle) error {
	const (
		tries = 40
		pause = 5 * time.Millisecond
	)
	for try := 0; ; try++ {
		pid := who.Pid()
		r := t.make(pid)
		err := r.Attach(t.ctx, who)
		if err == nil {
			t.count(func(p *Counts) { p.Late++ })
			t.run(pid, r)
			return nil
		}
		r.Close()
		if try == tries || t.ctx.Err() != nil || !isRunning(pid) || errors.Is(err, refusal.Err) || errors.Is(err, ErrNotWanted) || errors.Is(err, process.ErrForeignArch) {
			return err
		}
		time.Sleep(pause)
	}
}

// run goes on with a recording that is on, to its end.
func (t *Tree) run(pid int, r Recording) {
	t.enter(pid, r)
	err := r.Run(t.ctx)
	r.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at[pid] == r {
		delete(t.at, pid)
	}
	if t.errs++; err != nil && t.errs <= maxErrors {
		t.err = errors.Join(t.err, err)
	}
}

// maxErrors is how many recordings' errors are told.
const maxErrors = 10

// Wait waits until all recordings but the first have ended. The error is theirs.
func (t *Tree) Wait() (Counts, error) {
	t.wg.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.took.Unrecorded = t.failed
	return t.took, t.err
}

// lookBelow takes in the children of a process that have nothing of a recorder's, but for those to be skipped, and calls inherited with
// those that have, which takes them over. The kernel has told whose children they are, and that is so as long as both are alive.
func (t *Tree) lookBelow(parent holder, skip map[int]bool, generations int, inherited func(*process.Handle)) {
	if generations == 0 {
		return
	}
	children, _ := process.Children(parent.Pid()) // none of one that has ended
	for _, pid := range children {
		if skip[pid] {
			continue
		}
		t.mu.Lock()
		known, passed := t.at[pid] != nil || t.coming[pid] > 0, t.hasPassed(pid)
		t.mu.Unlock()
		if known {
			continue
		}
		child, err := process.Hold(pid)
		if err != nil {
			continue
		}
		if is, err := child.Parent(); err != nil || is != parent.Pid() || !parent.Alive() {
			child.Close()
			continue
		}
		switch {
		case passed:
			t.lookBelow(child, skip, generations-1, inherited)
			child.Close()
		case !hasRings(pid):
			t.late(child)
		default:
			t.lookBelow(child, skip, generations-1, inherited)
			inherited(child)
		}
	}
}

// hasRings says whether a process has a recorder's rings mapped: as a forked child has, or one that shares its parent's memory.
func hasRings(pid int) bool {
	p, err := process.Open(pid)
	if err != nil {
		return false
	}
	defer p.Close()
	l, err := target.FindRemains(p)
	return err != nil || l != nil
}

// hasPassed says whether a process's program can't be recorded. It may have another by now.
func (t *Tree) hasPassed(pid int) bool {
	program, found := t.passed[pid]
	return found && program == programOf(pid)
}

// programOf names a process and its program.
func programOf(pid int) string {
	start, _ := process.StartTime(pid, pid) // 0 for one that has ended
	exe, _ := process.Program(pid)
	return strconv.FormatUint(start, 10) + " " + exe
}

// isRunning says whether there is such a process that has not ended.
func isRunning(pid int) bool {
	_, dead := process.Ending(pid)
	return !dead
}
