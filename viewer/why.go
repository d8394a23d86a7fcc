package viewer

import (
	"context"
	"errors"
	"math"
	"net/http"

	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/timeline"
)

// CallID names a call of a reel.
type CallID struct {
	// Thread is the key of its thread, Start when it was entered, in ticks, and Function its ID.
	Thread   uint32
	Start    uint64
	Function uint32
}

// Explanation is why a call was slow.
type Explanation struct {
	Lines []ExplanationLine
	// Peer is the ordinary call that it was compared with; nil if there is none.
	Peer *CallID
}

// ExplanationLine is a line of an Explanation.
type ExplanationLine struct {
	Text string
	// Kind is head, cause, more (of the cause before) or note.
	Kind string
	// Thread is the key of the thread that it is about, 0 if it is about none, and From and To when, in nanoseconds from the recording's first
	// tick on.
	Thread   uint32
	From, To uint64
}

// ErrNotExplained is wrapped by errors that say why a call can't be explained, as there are too few others.
var ErrNotExplained = errors.New("it can't be told why it was slow")

// lineJSON is a line as api/why has it.
type lineJSON struct {
	Text   string  `json:"text"`
	Kind   string  `json:"kind"`
	Lane   *uint32 `json:"lane"` // null: it is about no place
	FromNS uint64  `json:"from_ns"`
	ToNS   uint64  `json:"to_ns"`
}

// maxLines bounds an explanation, each of at most maxName bytes.
const maxLines = 200

// why is api/why: why the call of a row that a time is in was slow, and the ordinary one that it was compared with.
func (r *recording) why(w http.ResponseWriter, q *query) error {
	lane, row, at := q.integer("lane", 0, 0, math.MaxUint32), q.integer("row", 0, 0, math.MaxInt32), q.time("at", 0)
	_ = q.ticket()
	if q.err != nil {
		return q.err
	}
	if r.server.opt.Explain == nil {
		return failed(http.StatusNotImplemented, "this server doesn't say why calls were slow")
	}
	tl, err := r.wait(q.ctx)
	if err != nil {
		return err
	}
	c, found, err := tl.CallAt(q.ctx, uint32(lane), row, at)
	if err != nil {
		return err
	}
	if !found {
		return failed(http.StatusNotFound, "there is no call at that place")
	}
	l := newLookup(tl)
	if l.lanes[lane].Goroutine != 0 {
		return failed(http.StatusUnprocessableEntity, "the page doesn't explain calls of goroutines yet; callreel why does")
	}
	x, err := r.explain(q.ctx, l.f, CallID{l.lanes[lane].Thread, c.Tick, c.Func})
	if errors.Is(err, ErrNotExplained) {
		return failed(http.StatusUnprocessableEntity, "%v", err)
	}
	if err != nil {
		return err
	}
	answer := struct {
		Lines []lineJSON `json:"lines"`
		Peer  *callJSON  `json:"peer,omitempty"`
	}{Lines: []lineJSON{}}
	for _, line := range x.Lines[:min(len(x.Lines), maxLines)] {
		j := lineJSON{Text: cut(line.Text, maxName), Kind: line.Kind, FromNS: line.From, ToNS: line.To}
		j.Lane = l.laneOf(line.Thread)
		answer.Lines = append(answer.Lines, j)
	}
	if x.Peer != nil {
		if answer.Peer, err = l.callOf(q.ctx, *x.Peer); err != nil {
			return err
		}
	}
	return writeJSON(w, answer)
}

// explain waits for its turn: like an analysis it takes all processors.
func (r *recording) explain(ctx context.Context, f *reel.File, id CallID) (x *Explanation, err error) {
	select {
	case r.server.turn <- struct{}{}:
		defer func() { <-r.server.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	err = catchFaults(func() error {
		x, err = r.server.opt.Explain(ctx, f, id)
		return err
	})
	return x, err
}

// laneOf is the lane of a thread, by its key; nil if it has none.
func (l *lookup) laneOf(thread uint32) *uint32 {
	for i := range l.lanes {
		if l.lanes[i].Thread == thread && l.lanes[i].Goroutine == 0 {
			return &l.lanes[i].ID
		}
	}
	return nil
}

// callOf finds a call; nil if there is none.
func (l *lookup) callOf(ctx context.Context, id CallID) (j *callJSON, err error) {
	lane := l.laneOf(id.Thread)
	if lane == nil {
		return nil, nil
	}
	at := l.tl.NS(id.Start)
	var c *reel.Call
	err = l.tl.Visit(ctx, []uint32{*lane}, at, at+1, timeline.Visitor{
		Enter: func(uint32, *reel.Call) {},
		Leave: func(_ uint32, k *reel.Call) bool {
			if k.Start == id.Start && k.Func == id.Function {
				found := *k
				c = &found
			}
			return c == nil
		},
	})
	if err != nil || c == nil {
		return nil, err
	}
	name, module := nameOf(l.f, c.Func)
	return &callJSON{
		Lane: *lane, Row: l.tl.Row(*lane, c.Stack, c.Depth), Func: c.Func, Name: name, Module: module, StartNS: at,
		DurationNS: l.f.Clock().Nanoseconds(c.Duration()), SelfNS: l.f.Clock().Nanoseconds(c.Self()), Depth: c.Depth, Stack: c.Stack, Flags: flagNames(c.Flags),
	}, nil
}
