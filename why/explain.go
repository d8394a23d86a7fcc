package why

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/timeline"
)

// Explain says why calls of a reel were slow. What it doesn't find there, it doesn't say: an answer may have no causes. Errors wrap
// ErrNoTimes, ErrNotChosen and ErrNoCall.
func Explain(ctx context.Context, f *reel.File, o Options) (*Report, error) {
	if f.Header().Clock.Mode == reel.ClockNone {
		return nil, fmt.Errorf("why: %s: %w", f.Name(), ErrNoTimes)
	}
	x := &explainer{f: f, o: o, threads: map[uint32]reel.Thread{}, names: map[uint32]string{}, hasStates: f.HasStates()}
	for _, t := range f.Threads() {
		x.threads[t.Key] = t
	}
	chosen, err := x.choose(ctx)
	if err != nil {
		return nil, fmt.Errorf("why: %s: %w", f.Name(), err)
	}
	r := &Report{Notes: x.notes()}
	for i := range chosen {
		a, err := x.answer(ctx, &chosen[i], chosen)
		if err != nil {
			return nil, err
		}
		r.Calls = append(r.Calls, *a)
	}
	slices.SortStableFunc(r.Calls, func(a, b Answer) int { return cmp.Compare(b.claimed(), a.claimed()) })
	r.Groups = groups(r.Calls)
	for _, group := range r.Groups {
		for _, i := range group {
			one := Report{Calls: r.Calls[i : i+1], Groups: [][]int{{0}}}
			r.Calls[i].Text = one.Text()
		}
	}
	return r, nil
}

// explainer answers for the calls of one reel.
type explainer struct {
	f         *reel.File
	o         Options
	found     *collector
	threads   map[uint32]reel.Thread // by key
	names     map[uint32]string
	hasStates bool
	cache     map[peersKey]*peerSet
	byTID     map[int][]reel.Thread
	tl        *timeline.Timeline // nil if the reel has none
	looked    bool               // for tl
	pieces    map[uint32]*pieces // by thread
}

// choose finds the calls that are to be explained.
func (x *explainer) choose(ctx context.Context) ([]ref, error) {
	fns, trigger, err := x.functions()
	if err != nil {
		return nil, err
	}
	over := uint64(0)
	if x.o.Over > 0 {
		over = x.ticks(uint64(x.o.Over))
	}
	if trigger == nil {
		x.found = x.collectIndexed(ctx, fns, over)
	}
	if x.found == nil {
		if x.found, err = collect(ctx, x.f, fns, over, x.o.Call, x.o.workers()); err != nil {
			return nil, err
		}
	}
	if x.o.Call != nil {
		if r := x.found.found[x.o.Call.Function].asked; r != nil {
			return []ref{*r}, nil
		}
		return nil, fmt.Errorf("call %v: %w", x.o.Call, ErrNoCall)
	}
	if trigger != nil {
		return x.triggered(trigger)
	}
	all := longest{most: MaxCalls}
	if over == 0 {
		all.most = min(MaxCalls, max(1, x.o.Slowest))
	} else if x.o.Slowest > 0 {
		all.most = min(MaxCalls, x.o.Slowest)
	}
	for _, p := range x.found.found {
		ended := uint64(0)
		for _, r := range p.top.list {
			if r.flags&reel.Unfinished == 0 {
				ended = max(ended, r.duration())
			}
		}
		for _, r := range p.top.list {
			// How long a call took that was open at the end isn't known, unless it took longer than any, and not for being stopped there.
			if r.duration() > over && (r.flags&reel.Unfinished == 0 || r.duration() > ended+x.ticks(stopped)) {
				all.add(r)
			}
		}
	}
	if len(all.list) == 0 {
		if over > 0 {
			return nil, fmt.Errorf("none of the function's calls took longer than %v: %w", x.o.Over, ErrNoCall)
		}
		return nil, fmt.Errorf("the function wasn't called: %w", ErrNoCall)
	}
	return all.list, nil
}

// stopped is for how long the end of a recording may stop threads at most, in nanoseconds.
const stopped = 100e6

// functions are those whose calls are read, and the trigger whose call is meant if it is a dump's.
func (x *explainer) functions() ([]uint32, *reel.Trigger, error) {
	switch d, isDump := x.f.Dump(); {
	case x.o.Call != nil:
		return []uint32{x.o.Call.Function}, nil, nil
	case x.o.Match != nil:
		var fns []uint32
		x.f.Functions(func(id uint32, fn reel.Function) bool {
			if x.o.Match(fn.Name) || x.o.Name != nil && x.o.Match(x.o.Name(fn.Name)) {
				fns = append(fns, id)
			}
			return true
		})
		if len(fns) > maxFunctions {
			return nil, nil, fmt.Errorf("%d functions are meant, more than %d: %w", len(fns), maxFunctions, ErrNotChosen)
		}
		return fns, nil, nil
	case isDump:
		for i := range d.Triggers {
			if t := &d.Triggers[i]; t.Function != 0 {
				return []uint32{t.Function}, t, nil
			}
		}
		return nil, nil, fmt.Errorf("this dump wasn't made for a call: %w", ErrNotChosen)
	}
	return nil, nil, ErrNotChosen
}

// triggered finds the call that a dump was made for. The trigger's times are the call's, or a little later.
func (x *explainer) triggered(t *reel.Trigger) ([]ref, error) {
	p := x.found.found[t.Function]
	const late = 1e6 // nanoseconds
	best := -1
	off := func(r *ref) uint64 { return max(r.start, t.Start) - min(r.start, t.Start) }
	for i := range p.top.list {
		r := &p.top.list[i]
		if r.sp != t.SP && t.SP != 0 || r.thread != t.Thread && r.goroutine == 0 && t.Thread != 0 || off(r) > x.ticks(late) {
			continue
		}
		if best < 0 || off(r) < off(&p.top.list[best]) {
			best = i
		}
	}
	if best >= 0 {
		return []ref{p.top.list[best]}, nil
	}
	return nil, fmt.Errorf("the call that the dump was made for isn't in it: %w", ErrNoCall)
}

// ticks is how many a time in nanoseconds has.
func (x *explainer) ticks(ns uint64) uint64 {
	ticks, nanoseconds := x.f.Clock().Rate()
	return uint64(float64(ns) * float64(ticks) / float64(nanoseconds))
}

func (x *explainer) ns(ticks uint64) uint64 { return x.f.Clock().Nanoseconds(ticks) }

// signed is a difference in nanoseconds.
func (x *explainer) signed(ticks int64) int64 {
	if ticks < 0 {
		return -int64(x.ns(uint64(-ticks)))
	}
	return int64(x.ns(uint64(ticks)))
}

// since is a tick in nanoseconds from the reel's first.
func (x *explainer) since(tick uint64) uint64 { return x.ns(tick - min(tick, x.f.FirstTick())) }

// name is what a function is called.
func (x *explainer) name(id uint32) string {
	if id == otherStack {
		return "(another stack)"
	}
	name, ok := x.names[id]
	if !ok {
		name = fmt.Sprintf("function %d", id)
		if fn, is := x.f.Function(id); is && fn.Name != "" {
			name = fn.Name
			if x.o.Name != nil {
				name = x.o.Name(name)
			}
		}
		x.names[id] = name
	}
	return name
}

func (x *explainer) nameAll(ids []uint32) []string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = x.name(id)
	}
	return list
}

// peersKey says whose peers they are.
type peersKey struct {
	fn     uint32
	role   string
	faults bool
}

// peerSet are the ordinary calls of a function by threads of one role.
type peerSet struct {
	durations []uint64 // of all, sorted
	count     uint64   // how many there are
	median    uint64
	p99       uint64
	mid       []placed // between the 20th and the 80th percentile
	spread    []placed // of all, evenly, and the longest
	allRoles  bool     // too few of the role: those of others are among them
}

// peersOf finds and reads the peers of a call; slow are the calls that are explained, which are nobody's peers.
func (x *explainer) peersOf(ctx context.Context, r *ref, slow []ref, faults bool) *peerSet {
	role := roleOf(x.threads[r.thread].Name)
	if r.goroutine != 0 {
		role = ""
	}
	k := peersKey{r.fn, role, faults}
	if s := x.cache[k]; s != nil {
		return s
	}
	s := &peerSet{}
	p := x.found.found[r.fn]
	var list []ref
	pick := func(of string, any bool) {
		list = list[:0]
		for i := range p.all.list {
			q := &p.all.list[i]
			if (any || q.goroutine != 0 || roleOf(x.threads[q.thread].Name) == of) && !isOne(q, slow) {
				list = append(list, *q)
			}
		}
	}
	if pick(role, false); len(list) < 4*fewPeers {
		pick("", true)
		s.allRoles = role != ""
	}
	s.count = uint64(len(list)) * max(1, p.all.every)
	for i := range list {
		s.durations = append(s.durations, list[i].duration())
	}
	slices.Sort(s.durations)
	if len(list) > 0 {
		s.median, s.p99 = rank(s.durations, 0.5), rank(s.durations, 0.99)
		low, high := rank(s.durations, 0.2), rank(s.durations, 0.8)
		var mid []ref
		for i := range list {
			if d := list[i].duration(); d >= low && d <= high {
				mid = append(mid, list[i])
			}
		}
		// Both at once: each piece of the reel is decoded once, and so is who is among both.
		mid, spread := x.fewer(evenly(mid, x.o.peers())), x.fewer(evenly(list, x.o.peers()))
		both, at := slices.Clone(mid), make([]int, len(spread))
		for i := range spread {
			if at[i] = slices.Index(mid, spread[i]); at[i] < 0 {
				at[i] = len(both)
				both = append(both, spread[i])
			}
		}
		trees := replay(ctx, x.f, both, replayed{peerNodes, faults, x.sampling(both, peersEvents)}, x.o.workers())
		s.mid = placeAll(trees[:len(mid)], both)
		of := make([]*tree, len(spread))
		for i := range of {
			of[i] = trees[at[i]]
		}
		s.spread = placeAll(of, spread)
	}
	if x.cache == nil {
		x.cache = map[peersKey]*peerSet{}
	}
	x.cache[k] = s
	return s
}

func isOne(r *ref, of []ref) bool {
	for i := range of {
		if of[i].start == r.start && of[i].fn == r.fn && of[i].thread == r.thread {
			return true
		}
	}
	return false
}

// rank is a percentile of sorted numbers, by the nearest rank.
func rank(sorted []uint64, part float64) uint64 {
	return sorted[min(len(sorted)-1, int(part*float64(len(sorted))))]
}

// evenly picks n of a list.
func evenly(list []ref, n int) []ref {
	if len(list) <= n {
		return slices.Clone(list)
	}
	picked := make([]ref, n)
	for i := range picked {
		picked[i] = list[(2*i+1)*len(list)/(2*n)]
	}
	return picked
}

func placeAll(trees []*tree, refs []ref) []placed {
	var list []placed
	for i, t := range trees {
		if t != nil {
			list = append(list, placed{tree: t, ref: refs[i]})
		}
	}
	return list
}

// claimed is how much of a call's time is explained.
func (a *Answer) claimed() (ns int64) {
	for i := range a.Causes {
		ns += a.Causes[i].ExcessNS
	}
	return ns
}
