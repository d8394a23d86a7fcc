package recorder

import (
	"context"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/collect"
	"github.com/callreel/callreel/recorder/internal/follow"
	"github.com/callreel/callreel/recorder/internal/tables"
)

// others are the recordings of a reel but the first: those of programs that are started meanwhile, or none.
type others interface {
	// store gives images and functions their numbers.
	store(reel tables.Reel) tables.Store
	// start lets programs be recorded, until ctx ends.
	start(ctx context.Context)
	// wait waits for those that are, and adds what they came to.
	wait(to *Result) error
	// family is the processes whose threads write into a recording's rings.
	family(r *recording) family
}

// family is the processes whose threads write into a recording's rings.
type family interface {
	collect.Processes
	// AwaitExecs sees to programs that these processes start, until EndExecs.
	AwaitExecs(ctx context.Context)
	EndExecs()
	// Detach restores the text of those that were forked, and says whether it is the files' in all of them.
	Detach(ctx context.Context) (verified bool, err error)
	// Rest does so for those that were not to be found then: it comes when the rings have been read, and shared says whether anybody else
	// still has them.
	Rest(ctx context.Context, shared func() (shared, known bool)) (verified bool, err error)
}

func (r *recording) newOthers() others {
	r.sum.TextVerified = true
	switch {
	case r.isCoupled():
		return newCouple(r)
	case !r.opt.Follow:
		return nobody{}
	}
	p := &programs{first: r}
	p.tree = follow.NewTree(p.make, r.notice)
	return p
}

// nobody is for a recording that doesn't follow.
type nobody struct{}

func (nobody) store(reel tables.Reel) tables.Store { return tables.Own{To: reel} }
func (nobody) start(context.Context)               {}
func (nobody) wait(*Result) error                  { return nil }
func (nobody) family(r *recording) family          { return newAlone(r) }

// programs are recorded as they are started.
type programs struct {
	first *recording
	tree  *follow.Tree
}

func (p *programs) store(reel tables.Reel) tables.Store { return tables.NewShared(reel) }
func (p *programs) start(ctx context.Context)           { p.tree.Start(ctx, p.first.pid(), p.first) }
func (p *programs) family(r *recording) family          { return p.tree.NewFamily(r.s, r, r.since) }

func (p *programs) wait(to *Result) error {
	counts, err := p.tree.Wait()
	to.add(&p.first.sum)
	to.Processes = Processes(counts)
	p.first.plans.Close()
	return err
}

// subRing is how much memory the rings of a program have that was started, by default: there may be many at once.
const subRing = 8 << 20

// make returns the recording of a program that a process was replaced by.
func (p *programs) make(pid int) follow.Recording {
	first := p.first
	r := &recording{shared: first.shared, opt: first.opt, first: first, out: part{first.out}, clock: sameClock(first.set.TicksPerSecond)}
	r.opt.PID, r.opt.Command, r.opt.Progress, r.opt.Started = pid, nil, nil, nil
	if r.opt.RingSize == 0 {
		r.opt.RingSize = subRing
	}
	return r
}

// Attach does everything up to the first event in a process that runs.
func (r *recording) Attach(ctx context.Context, who *process.Handle) error {
	return r.attachTo(ctx, who.Pid(), who)
}

var _ follow.Recording = (*recording)(nil)
