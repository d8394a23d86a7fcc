package recorder

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/tables"
	"github.com/callreel/callreel/recorder/internal/target"
)

// tree is all recordings that go into one reel: that of the process it began with, and those of the programs that processes below it
// were replaced by. Each has rings of its own, and IDs of functions that are made the reel's when events come, see lateNames.
type tree struct {
	root   *recording
	ctx    context.Context
	plans  mapped.PlanCache
	tables *tables.Shared

	mu     sync.Mutex // guards what follows
	at     map[int]*recording
	coming map[int]int    // processes that are being taken in, or watched for that
	passed map[int]string // the programs of those that can't be
	// mostPassed is at how many of these those that have ended are looked for.
	mostPassed int
	failed     int
	took       Processes
	sum        Result // of those that have ended, but for the first
	err        error
	errs       int
	ended      bool

	wg sync.WaitGroup
}

func newTree(root *recording) *tree {
	return &tree{root: root, at: map[int]*recording{}, coming: map[int]int{},
		passed: map[int]string{}, mostPassed: fewPassed, sum: Result{TextVerified: true}}
}

// start begins with the first process, which is being recorded.
func (t *tree) start(ctx context.Context) {
	t.ctx = ctx
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at[t.root.s.Process.Pid()] = t.root
}

// others are the recordings that are on, but for the first.
func (t *tree) others() []*recording {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*recording
	for _, r := range t.at {
		if r != t.root && !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	return all
}

func (t *tree) count(f func(p *Processes)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&t.took)
}

// replaced says that a process has left its recording: it has ended, or runs another program by now.
func (t *tree) replaced(p *process.Process, r *recording) {
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
func (t *tree) late(who *process.Handle) {
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
func (t *tree) expect(pid int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.coming[pid]++
}

// enter says whose recording a process is in.
func (t *tree) enter(pid int, r *recording) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at[pid] = r
}

func (t *tree) came(pid int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.coming[pid]--; t.coming[pid] == 0 {
		delete(t.coming, pid)
	}
}

// pass leaves a process alone. What becomes of its children is another matter.
func (t *tree) pass(pid int, err error) {
	const most = 5
	t.mu.Lock()
	if len(t.passed) >= t.mostPassed {
		maps.DeleteFunc(t.passed, func(pid int, program string) bool { return programOf(pid) != program })
		t.mostPassed = max(fewPassed, 2*len(t.passed))
	}
	t.passed[pid] = programOf(pid)
	notice := false
	if isRunning(pid) && t.ctx.Err() == nil && !errors.Is(err, errNotWanted) && !errors.Is(err, process.ErrNoProcess) {
		t.failed++
		notice = t.failed <= most
	}
	t.mu.Unlock()
	if notice {
		t.root.notice("a program that was started is not recorded: %v", err)
	}
}

// fewPassed is of how many processes at least it is known that they are left alone, be they still there or not.
const fewPassed = 1000

// attach records a running process, as Record does, until it ends. A program that has only just begun isn't ready for that.
func (t *tree) attach(who *process.Handle) error {
	const (
		tries = 40
		pause = 5 * time.Millisecond
	)
	for try := 0; ; try++ {
		pid := who.Pid()
		r := t.recording(pid)
		r.who = who
		err := r.attachTo(t.ctx, pid)
		if err == nil {
			t.count(func(p *Processes) { p.Late++ })
			t.run(pid, r)
			return nil
		}
		if r.s != nil {
			r.s.Close()
		}
		if try == tries || t.ctx.Err() != nil || !isRunning(pid) || errors.Is(err, ErrRefused) || errors.Is(err, errNotWanted) || errors.Is(err, process.ErrForeignArch) {
			return err
		}
		time.Sleep(pause)
	}
}

// subRing is how much memory the rings of a program have that was started, by default: there may be many at once.
const subRing = 8 << 20

// recording is one of a program that a process was replaced by.
func (t *tree) recording(pid int) *recording {
	r := &recording{opt: t.root.opt, tree: t, w: t.root.w, to: t.root.to, memory: t.root.memory}
	r.switches = newSwitches(r)
	r.opt.PID, r.opt.Command, r.opt.Progress, r.opt.Started = pid, nil, nil, nil
	r.opt.Notice = t.root.notice
	if r.opt.RingSize == 0 {
		r.opt.RingSize = subRing
	}
	return r
}

// run drains a recording that is on, to its end.
func (t *tree) run(pid int, r *recording) {
	t.enter(pid, r)
	err := r.session(t.ctx)
	r.s.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at[pid] == r {
		delete(t.at, pid)
	}
	t.sum.add(&r.result)
	if t.errs++; err != nil && t.errs <= maxErrors {
		t.err = errors.Join(t.err, err)
	}
}

// maxErrors is how many recordings' errors are told.
const maxErrors = 10

// add adds what the recording of a program came to that was started.
func (r *Result) add(s *Result) {
	r.Seen, r.Traced, r.Made = r.Seen+s.Seen, r.Traced+s.Traced, r.Made+s.Made
	if r.Refused == nil {
		r.Refused = map[string]int{}
	}
	for why, n := range s.Refused {
		r.Refused[why] += n
	}
	r.Calls, r.Events, r.Dropped = r.Calls+s.Calls, r.Events+s.Events, r.Dropped+s.Dropped
	r.Ring, r.RingEnough, r.Scarce = max(r.Ring, s.Ring), max(r.RingEnough, s.RingEnough), r.Scarce || s.Scarce
	r.LostExits, r.Torn, r.Threads = r.LostExits+s.LostExits, r.Torn+s.Torn, r.Threads+s.Threads
	r.TextVerified = r.TextVerified && s.TextVerified
	const most = 1000 // bytes
	if s.Left != "" && !strings.Contains(r.Left, s.Left) && len(r.Left) < most {
		r.Left = strings.TrimPrefix(r.Left+"; "+s.Left, "; ")
	}
}

// wait waits until all recordings but the first have ended, and adds what they came to to its result.
func (t *tree) wait() error {
	t.wg.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	sum := &t.root.result
	sum.add(&t.sum)
	t.took.Unrecorded = t.failed
	sum.Processes = t.took
	t.plans.Close()
	return t.err
}

// lookBelow takes in the children of a process that have nothing of a recorder's, but for those to be skipped, and calls inherited with
// those that have, which takes them over. The kernel has told whose children they are, and that is so as long as both are alive.
func (t *tree) lookBelow(parent holder, skip map[int]bool, generations int, inherited func(*process.Handle)) {
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

// errNotWanted: nothing of a program is chosen, nor can it be followed to what is.
var errNotWanted = errors.New("nothing of it is chosen")

// hasPassed says whether a process's program can't be recorded. It may have another by now.
func (t *tree) hasPassed(pid int) bool {
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

// isSub says whether it is one of a program that a process of the tree was replaced by.
func (r *recording) isSub() bool { return r.tree != nil && r.tree.root != r }
