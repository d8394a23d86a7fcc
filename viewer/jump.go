package viewer

import (
	"context"
	"math"
	"net/http"

	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/timeline"
)

// callAt is api/call: the call of a row that a time is in.
func (r *recording) callAt(w http.ResponseWriter, q *query) error {
	lane, row, at := q.integer("lane", 0, 0, math.MaxUint32), q.integer("row", 0, 0, math.MaxInt32), q.time("at", 0)
	if q.err != nil {
		return q.err
	}
	tl, err := r.wait(q.ctx)
	if err != nil {
		return err
	}
	c, found, err := tl.CallAt(q.ctx, uint32(lane), row, at)
	if err != nil {
		return err
	}
	var callees *int
	if found {
		if callees, err = countCallees(q.ctx, tl, &c); err != nil {
			return err
		}
	}
	return r.call(w, tl, &c, callees, found)
}

// maxInside is after how many calls counting those that one has made is given up: it should not be noticed.
const maxInside = 1 << 18

// countCallees counts the calls that a call made itself; nil if that takes long, as in a Go program.
func countCallees(ctx context.Context, tl *timeline.Timeline, c *timeline.Found) (*int, error) {
	if tl.File().Header().Goroutines {
		return nil, nil
	}
	n, seen, inside := 0, 0, false
	err := tl.Visit(ctx, []uint32{c.Lane}, c.Start, c.Start+c.Duration+1, timeline.Visitor{
		Enter: func(_ uint32, k *reel.Call) {
			seen++
			switch {
			case k.Stack != c.Stack:
			case k.Depth == c.Depth && k.Func == c.Func && tl.NS(k.Start) == c.Start: // the last of them, if there are several
				n, inside = 0, true
			case k.Depth <= c.Depth:
				inside = false
			case k.Depth == c.Depth+1 && inside:
				n++
			}
		},
		Leave: func(uint32, *reel.Call) bool { return seen <= maxInside },
	})
	if err != nil || seen > maxInside {
		return nil, err
	}
	return &n, nil
}

// nextCall is api/next: the next call of a function, or of those that a text finds, after a call or, with dir=-1, before it.
func (r *recording) nextCall(w http.ResponseWriter, q *query) error {
	at := timeline.Position{Lane: uint32(q.integer("lane", 0, 0, math.MaxUint32)), Row: q.integer("row", 0, -1, math.MaxInt32), At: q.time("at", 0)}
	return r.search(w, q, at, q.integer("dir", 1, -1, 1) < 0)
}

// firstCall is api/first: the first such call.
func (r *recording) firstCall(w http.ResponseWriter, q *query) error {
	return r.search(w, q, timeline.Position{Row: -1}, false)
}

func (r *recording) search(w http.ResponseWriter, q *query, from timeline.Position, backwards bool) error {
	var match func(uint32) bool
	text := q.text("q")
	switch {
	case q.has("f"):
		id := q.function()
		match = func(fn uint32) bool { return fn == id }
	case q.has("q"):
	default:
		q.fail("f= or q=: a function or a text to find is expected")
	}
	if q.err != nil {
		return q.err
	}
	tl, err := r.wait(q.ctx)
	if err != nil {
		return err
	}
	if match == nil {
		found := r.names.matching(text)
		match = func(fn uint32) bool { return found[fn] }
	}
	c, found, err := tl.Next(q.ctx, match, from, backwards)
	if err != nil {
		return err
	}
	return r.call(w, tl, &c, nil, found)
}
