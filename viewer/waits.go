package viewer

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"

	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/timeline"
	"github.com/callreel/callreel/reel/waiting"
)

// mostEvents is up to how many events of a reel are read to say who was waited for: about a second's work of a processor.
const mostEvents = 100_000_000

// holders adds to blocked stretches of a lane what was waited for and who, if the request wants that (deep=1) and it doesn't take long.
func (r *recording) holders(q *query, l *lookup, lane uint32, from, to uint64, list []reel.StateInterval, into []*stateJSON) error {
	if q.choice("deep", "0", "1") != "1" || len(list) == 0 || list[0].State != reel.StateBlocked || l.f.Events() > mostEvents || l.f.Header().Goroutines {
		return q.err
	}
	select {
	case r.server.turn <- struct{}{}:
		defer func() { <-r.server.turn }()
	case <-q.ctx.Done():
		return context.Cause(q.ctx)
	}
	at := map[uint64]int{}
	for i := range list {
		at[list[i].From] = i
	}
	stretches, _ := waiting.Find(l.f, waiting.Options{
		Threads: []uint32{l.lanes[lane].Thread}, From: from, To: to,
		Keep: func(s *waiting.Stretch) bool { _, ok := at[s.From]; return ok },
	})
	for i := range stretches {
		l.held(&stretches[i], into[at[stretches[i].From]])
	}
	return nil
}

// held adds what is known of a stretch.
func (l *lookup) held(s *waiting.Stretch, j *stateJSON) {
	if s.HasWait || s.Kind != waiting.Other || s.Address != 0 {
		if j.Wait == nil {
			j.Wait = &waitJSON{Syscall: -1}
		}
		if j.Wait.Kind = s.Kind.String(); s.Address != 0 {
			j.Wait.Address = fmt.Sprintf("%#x", s.Address)
			if place, ok := waiting.Place(l.f, s.Address); ok {
				j.Wait.Address = cut(place, maxLaneName)
			}
		}
	}
	threads := l.f.Threads()
	of := func(key uint32) *reel.Thread {
		i := slices.IndexFunc(threads, func(t reel.Thread) bool { return t.Key == key })
		if i < 0 {
			return &reel.Thread{}
		}
		return &threads[i]
	}
	if j.Waker == nil && s.Waker != 0 {
		t := of(s.Waker)
		j.Waker = &wakerJSON{TID: t.TID, Name: cut(t.Name, maxLaneName), Lane: l.laneOf(s.Waker)}
	}
	for i := range s.Holders {
		h := &s.Holders[i]
		t := of(h.Thread)
		x := holderJSON{Lane: l.laneOf(h.Thread), TID: t.TID, Name: cut(t.Name, maxLaneName), FromNS: l.tl.NS(h.From), ToNS: l.tl.NS(h.To), HeldNS: l.f.Clock().Nanoseconds(h.Held)}
		if fn := h.Function(); fn != 0 {
			x.Function, _ = nameOf(l.f, fn)
		}
		if n := len(h.In); n > 0 {
			x.In, _ = nameOf(l.f, h.In[n-1])
		}
		j.Holders = append(j.Holders, x)
	}
}

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
	list = longest(list)
	for _, x := range list {
		j := l.state(uint32(lane), &x)
		sr.Seek(x.From)
		sr.Next()
		if err := l.around(q.ctx, sr, &x, &j, j.FromNS); err != nil {
			return err
		}
		answer.Waits = append(answer.Waits, j)
	}
	all := make([]*stateJSON, len(list))
	for i := range all {
		all[i] = &answer.Waits[i]
	}
	if err := r.holders(q, l, uint32(lane), from, to, list, all); err != nil {
		return err
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
	if clocks == nil || !clocks.lanes[c.Lane].States || tl.File().Header().Goroutines {
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
