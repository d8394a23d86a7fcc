package viewer

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"slices"

	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/timeline"
)

// Waits shorter than that are only summed up; mostWaits is how many are listed, the longest.
const (
	shortWait = 100_000 // nanoseconds
	mostWaits = 40
)

// waits is api/waits: the blocked stretches of the call of a row that a time is in, and its self time split.
func (r *recording) waits(w http.ResponseWriter, q *query) error {
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
	l := newLookup(tl)
	if !found || !l.lanes[lane].States {
		return writeJSON(w, nil)
	}
	answer := struct {
		Waits []stateJSON `json:"waits"` // the longest, in order of time
		Long  int         `json:"long"`  // how many there are of at least 100 µs
		Short int         `json:"short"` // and how many shorter ones
		// ShortNS is what those took together.
		ShortNS uint64      `json:"short_ns"`
		Self    *statesJSON `json:"self,omitempty"` // absent where it takes long to tell
	}{Waits: []stateJSON{}}
	from, to := tl.Tick(c.Start), tl.Tick(c.Start+c.Duration)
	var list []reel.StateInterval
	sr := l.f.States(l.lanes[lane].Thread)
	sr.Seek(from)
	for n := 1; ; n++ {
		x, ok := sr.Next()
		if !ok || x.From >= to {
			break
		}
		if n%tellEvery == 0 && q.ctx.Err() != nil {
			return context.Cause(q.ctx)
		}
		if x.State != reel.StateBlocked {
			continue
		}
		if d := l.f.Clock().Nanoseconds(min(x.To, to) - max(x.From, from)); d < shortWait {
			answer.Short++
			answer.ShortNS += d
			continue
		}
		answer.Long++
		list = append(list, x)
		if len(list) >= 1<<12 { // of an hour's waits the longest are enough
			list = longest(list)
		}
	}
	for _, x := range longest(list) {
		j := l.state(uint32(lane), &x)
		sr.Seek(x.From)
		sr.Next()
		if err := l.around(q.ctx, sr, &x, &j); err != nil {
			return err
		}
		answer.Waits = append(answer.Waits, j)
	}
	if answer.Self, err = selfStates(q.ctx, tl, &c); err != nil {
		return err
	}
	return writeJSON(w, answer)
}

// longest keeps the longest intervals, in order of time.
func longest(list []reel.StateInterval) []reel.StateInterval {
	if len(list) > mostWaits {
		slices.SortFunc(list, func(a, b reel.StateInterval) int { return cmp.Compare(b.To-b.From, a.To-a.From) })
		list = list[:mostWaits]
	}
	slices.SortFunc(list, func(a, b reel.StateInterval) int { return cmp.Compare(a.From, b.From) })
	return list
}

// selfStates splits the self time of a call by what its thread did; nil if that takes long.
func selfStates(ctx context.Context, tl *timeline.Timeline, c *timeline.Found) (*statesJSON, error) {
	clocks := newLaneClocks(tl)
	if clocks == nil || !clocks.lanes[c.Lane].States {
		return nil, nil
	}
	p := &piece{from: c.Start, to: c.Start + c.Duration, start: tl.Tick(c.Start), end: tl.Tick(c.Start + c.Duration), first: true}
	clocks.begin(p)
	stacks := newOpenStacks(clocks)
	seen := 0
	var self *reel.StateTimes
	err := tl.Visit(ctx, []uint32{c.Lane}, p.from, p.to, timeline.Visitor{
		Enter: func(lane uint32, k *reel.Call) {
			seen++
			stacks.push(stacks.of(lane, k), k, openFrame{function: k.Func})
		},
		Leave: func(lane uint32, k *reel.Call) bool {
			f := stacks.pop(stacks.of(lane, k), p, k)
			if k.Stack == c.Stack && k.Depth == c.Depth && k.Func == c.Func && tl.NS(k.Start) == c.Start {
				self = &f.selfStates
				return false
			}
			return seen <= maxInside
		},
		Paused:  func(lane uint32, stack int, tick uint64) { stacks.pause(lane, stack, tick) },
		Resumed: func(lane uint32, stack int, tick uint64) { stacks.resume(p, lane, stack, tick) },
	})
	if err != nil || self == nil {
		return nil, err
	}
	return splitJSON(tl.File(), *self), nil
}
