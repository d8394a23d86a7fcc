package budget

import (
	"slices"
	"time"
)

// recent is what was called lately, so that a load that goes through many short pieces of work is held to the budget as a whole.
type recent struct {
	lists [][]Function
	loads []load
	cpu   float64 // of all
}

const (
	// recentCPU is for how much processor time that is, in seconds, recentMost how many stretches at most.
	recentCPU  = 0.4
	recentMost = 64
)

// add adds a stretch.
func (r *recent) add(list []Function, l load) {
	n := 0
	for n < len(r.lists) && (r.cpu+l.cpu-r.loads[n].cpu > recentCPU || len(r.lists)-n >= recentMost) {
		r.cpu -= r.loads[n].cpu
		n++
	}
	r.lists, r.loads = append(slices.Delete(r.lists, 0, n), list), append(slices.Delete(r.loads, 0, n), l)
	r.cpu += l.cpu
}

// sum is what was called of the functions for which is says so.
func (r *recent) sum(is func(id uint32) bool) (all []Function, l load) {
	together := together{at: map[uint32]int{}}
	for i, list := range r.lists {
		for k := range list {
			if f := &list[k]; is(f.ID) {
				together.add(f)
			}
		}
		l.cpu, l.ticks = l.cpu+r.loads[i].cpu, l.ticks+r.loads[i].ticks
	}
	for i := range together.all {
		l.all += float64(together.all[i].Calls)
	}
	return together.all, l
}

// together is functions of several stretches.
type together struct {
	all []Function
	at  map[uint32]int // places in all, by ID
}

func (t *together) add(f *Function) {
	a, met := t.at[f.ID]
	if !met {
		t.at[f.ID] = len(t.all)
		t.all = append(t.all, *f)
		return
	}
	s := &t.all[a]
	if n := float64(s.Ended + f.Ended); n > 0 {
		s.Mean = (s.Mean*float64(s.Ended) + f.Mean*float64(f.Ended)) / n
		s.Beneath = (s.Beneath*float64(s.Ended) + f.Beneath*float64(f.Ended)) / n
	}
	s.Calls, s.Self, s.Ended = s.Calls+f.Calls, s.Self+f.Self, s.Ended+f.Ended
	s.P99, s.Max, s.Half, s.Kept = max(s.P99, f.P99), max(s.Max, f.Max), max(s.Half, f.Half), f.Kept
}

// leastCPU is for how much processor time calls are held against it: less says nothing, but that there were too many of them.
const leastCPU = 2 * time.Millisecond

// short is stretches that are too short to say anything, until there is enough of them.
type short struct {
	list []Function
	load load
}

// add adds a stretch, and returns all of them if together they have leastCPU of processor time, or more than so many calls.
func (s *short) add(list []Function, l load, many float64) (all []Function, sum load, enough bool) {
	if len(s.list) > 0 {
		t := together{at: map[uint32]int{}}
		for _, list := range [][]Function{s.list, list} {
			for i := range list {
				t.add(&list[i])
			}
		}
		list = t.all
	}
	b := &s.load
	l = load{ticks: b.ticks + l.ticks, cpu: b.cpu + l.cpu, all: b.all + l.all, dropped: b.dropped + l.dropped}
	if l.cpu < leastCPU.Seconds() && l.all <= many {
		s.list, s.load = list, l
		return nil, load{}, false
	}
	*s = short{}
	return list, l, true
}
