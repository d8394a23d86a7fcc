package sampler

import (
	"context"
	"errors"

	"github.com/callreel/callreel/process"
)

// A Holder walks the stacks of threads that its user has stopped, one at a time. It reads the process's maps when it is made, and again
// where a walk fails for what was mapped since.
type Holder struct{ l *live }

// NewHolder makes a Holder of a process, which stays the caller's. ctx ends what the Symbolizer does before.
func NewHolder(ctx context.Context, p *process.Process, o Options) (*Holder, error) {
	o.allow()
	l := &live{p: p, o: o, budget: maxFrames}
	if err := l.refreshPrepared(ctx); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, errors.Join(context.Cause(ctx), l.space.close())
	}
	return &Holder{l}, nil
}

// Images are what the process had mapped when its maps were read last. They are the Holder's.
func (h *Holder) Images() []*Image { return h.l.space.images }

// Stack walks a stopped thread. Its frames stay valid until Close.
func (h *Holder) Stack(t *process.Thread) (Thread, error) {
	l := h.l
	l.outdated, l.budget = false, maxFrames
	out := Thread{TID: t.TID}
	if err := l.read(t); err != nil {
		return out, err
	}
	l.walk(&out)
	return out, nil
}

// Look takes the stacks of threads as Stacks does, each stopped by itself only while its stack is read. What Stack needs to walk the same
// threads while they are stopped is known then.
func (h *Holder) Look(ctx context.Context, infos []process.ThreadInfo) ([]Thread, error) {
	l := h.l
	l.outdated, l.budget, l.threads = false, maxFrames, nil
	err := l.take(ctx, infos)
	return l.threads, err
}

// Close closes the files of the images.
func (h *Holder) Close() error { return h.l.space.close() }
