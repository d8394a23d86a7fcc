package recorder

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/libraries"
	"github.com/callreel/callreel/recorder/internal/probes"
	"github.com/callreel/callreel/recorder/internal/target"
)

// reader takes what threads have written into the rings: all of it (stream), or the last moments (moments).
type reader interface {
	probes.Loop
	// run goes on until ctx ends or the process does.
	run(ctx context.Context) error
	// end takes what is left, when the process has been left. gone says that it has ended by itself.
	end(gone bool) error
	// sum says in the result what it came to.
	sum(to *Result)
	// libraries is how soon, at the soonest, it is looked for libraries.
	libraries() time.Duration
	// dump answers who asks for a dump.
	dump(ctx context.Context, q *dumpRequest) controlAnswer
	// set changes what isn't about functions, all of it or nothing.
	set(q *SetRequest) error
	// settle returns when all has been taken from the rings that was written before.
	settle() error
}

// run records until the end, detaches and sums up.
func (r *recording) run(ctx context.Context) (*Result, error) {
	if r.opt.Started != nil {
		r.opt.Started()
	}
	if r.opt.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.opt.Duration)
		defer cancel()
	}
	r.others.start(ctx)
	err := r.Run(ctx)
	err = errors.Join(err, r.others.wait(&r.result), r.endScheduling())
	if r.result.Seen == 0 && err == nil && r.opt.Follow {
		err = r.unmatched
	}
	return &r.result, r.out.end(ctx, &r.result, err)
}

// Run reads until the end of the process, or of ctx, and detaches.
func (r *recording) Run(ctx context.Context) error {
	err := r.session(ctx)
	if !r.isFirst() {
		r.sumMu.Lock()
		defer r.sumMu.Unlock()
		r.sum.add(&r.result)
	}
	return err
}

func (r *recording) session(ctx context.Context) error {
	r.countSkipped()
	making := probes.NewMaker(r.s)
	family := r.others.family(r)
	r.reader = r.newReader(making, family)
	r.paused.reads(r, r.reader)
	late := r.newLateChoice(ctx)
	libs := libraries.Start(ctx, libraries.Config{Target: r.s, Making: making, Choice: late, Images: r.images,
		Functions: r.functions, Arm: r.arm, Next: r.nextID, Interval: r.reader.libraries(), Notice: r.notice}, r.s.SearchedImages)
	family.AwaitExecs(ctx)
	r.switches.Begin(making, r.reader)
	stopBudget := r.keepBudget(ctx)
	r.serveControl(ctx)
	err := r.reader.run(ctx)
	r.tell(Progress{Ending: true})
	stopBudget()
	r.switches.End()
	r.control.Close()
	counts, next := libs.End()
	late.end()
	r.result.Libraries, r.nextID = Libraries(counts), next
	family.EndExecs()
	// What follows must be done whatever has ended the recording.
	ctx = context.WithoutCancel(ctx)
	r.watch.Ending(r.isFirst())
	u, derr := r.s.Detach(ctx)
	cut := r.s.GatesClosed.Tick
	if u.Gone {
		cut = 0
	}
	r.watch.Cut(r.pid(), cut)
	if derr != nil {
		err = errors.Join(err, fmt.Errorf("detaching: %w (callreel detach -p %d tries again)", derr, r.s.PID()))
	}
	if r.s.Sandboxed() {
		r.result.Sandboxed = true
		r.notice("the process restricts its own system calls from here on (seccomp): recording has ended")
	}
	verified, ferr := family.Detach(ctx)
	if ferr != nil {
		err = errors.Join(err, fmt.Errorf("detaching from children: %w", ferr))
	}
	if eerr := r.reader.end(u.Gone); err == nil {
		err = eerr
	}
	r.result.Made = r.result.Traced
	if r.s.Lazy() {
		making.MakeAll() // of threads that were killed while they asked, too
		r.result.Made = making.Made()
	}
	r.result.AttachStop, r.result.DetachStop = r.s.Stopped, u.Stopped
	r.result.Ended, r.result.Left = u.Gone, u.Kept
	if u.Odd > 0 {
		r.notice("%d semaphores of markers are left as they are: somebody else has set them to less than was added", u.Odd)
	}
	if derr != nil {
		verified = false
	} else {
		ok, verr := r.verify(u)
		verified = verified && ok
		err = errors.Join(err, verr)
	}
	r.reader.sum(&r.result)
	shared := r.s.RingsShared
	if derr != nil || u.Kept != "" { // the process itself has the rings
		shared = func() (bool, bool) { return false, false }
	}
	ok, ferr := family.Rest(ctx, shared)
	verified = verified && ok
	if ferr != nil {
		err = errors.Join(err, fmt.Errorf("detaching from children: %w", ferr))
	}
	r.result.TextVerified = verified
	return err
}

// verify compares the text with the files.
func (r *recording) verify(u target.Undone) (bool, error) {
	if u.Gone {
		return true, nil
	}
	for _, im := range r.s.Images {
		ok, err := im.VerifyText(r.s.Process)
		for try := 0; im.Unloadable && (!ok || err != nil) && r.s.Alive() && try < target.UndoRetries; try++ {
			time.Sleep(time.Millisecond) // a library came or went while it was read
			ok, err = im.VerifyText(r.s.Process)
		}
		if errors.Is(err, process.ErrNoProcess) || err != nil && !r.s.Alive() {
			return true, nil
		}
		if err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// add adds what the recording of another program came to.
func (r *Result) add(s *Result) {
	r.Seen, r.Traced, r.Made = r.Seen+s.Seen, r.Traced+s.Traced, r.Made+s.Made
	if r.Refused == nil {
		r.Refused = map[string]int{}
	}
	for why, n := range s.Refused {
		r.Refused[why] += n
	}
	r.Imports.add(&s.Imports)
	m := &r.Markers
	m.Seen, m.Recorded = m.Seen+s.Markers.Seen, m.Recorded+s.Markers.Recorded
	for why, n := range s.Markers.Refused {
		if m.Refused == nil {
			m.Refused = map[string]int{}
		}
		m.Refused[why] += n
	}
	r.Marks += s.Marks
	r.Calls, r.Events, r.Dropped = r.Calls+s.Calls, r.Events+s.Events, r.Dropped+s.Dropped
	r.Ring, r.RingEnough, r.Scarce = max(r.Ring, s.Ring), max(r.RingEnough, s.RingEnough), r.Scarce || s.Scarce
	r.LostExits, r.Torn, r.Threads = r.LostExits+s.LostExits, r.Torn+s.Torn, r.Threads+s.Threads
	r.TextVerified = r.TextVerified && s.TextVerified
	const most = 1000 // bytes
	if s.Left != "" && !strings.Contains(r.Left, s.Left) && len(r.Left) < most {
		r.Left = strings.TrimPrefix(r.Left+"; "+s.Left, "; ")
	}
}
