package why

import (
	"cmp"
	"slices"

	"github.com/callreel/callreel/reel"
)

// place is where a part of the excess is: a path, with what is below it or without, and one state or all.
type place struct {
	at     int32
	alone  bool    // without the paths below it
	except []int32 // paths below it that are places of their own
	state  int     // -1 for all
	excess int64
	// via is the path by which recursion came to the place, if peers don't go there; else 0.
	via int32
}

// named is the path that stands for the place.
func (p *place) named() int32 { return max(p.at, p.via) }

const (
	// holds is the part of an excess that a path holds to stand for all of it. Measured on planted causes: less names places that hold
	// half of it, more names their callers.
	holds = 0.8
	// worth is the part of the whole excess for which a place is told apart.
	worth = 0.15
	// pure is the part of an excess in one state for which the others aren't told apart.
	pure = 0.7
	// mostParts is into how many places an excess is split before it counts as spread.
	mostParts = 3
)

// rollup finds the places that the excess is in: the lowest that hold it.
type rollup struct {
	*aligned
	total    int64 // excess of the call
	state    int   // that is looked at, -1 for all
	children [][]int32
	found    []place
}

// places lists the places of a positive excess, the largest first. Where a thread waits for a processor says nothing: it may be anywhere. So
// that time is left out at first, then goes to the work that it follows from, and what is left of it is one place.
func (a *aligned) places() []place {
	r := rollup{aligned: a, total: work(a.at[0].sub), state: -1, children: make([][]int32, len(a.list))}
	for i := 1; i < len(a.list); i++ {
		up := a.list[i].parent
		r.children[up] = append(r.children[up], int32(i))
	}
	if r.total > 0 {
		r.descend(0)
	}
	whole := r.found
	r.found = nil
	for _, p := range whole {
		r.byState(p)
	}
	r.waiting()
	for i := range r.found {
		r.found[i].via = r.cameBy(&r.found[i])
	}
	least := int64(worth / 3 * float64(sum(a.at[0].sub)))
	found := slices.DeleteFunc(r.found, func(p place) bool { return p.excess < least || p.excess <= 0 })
	slices.SortStableFunc(found, func(a, b place) int { return cmp.Compare(b.excess, a.excess) })
	return found
}

// work is a time without what was spent ready.
func work(v [4]int64) int64 { return sum(v) - v[reel.StateReady] }

func (r *rollup) pick(v [4]int64) int64 {
	if r.state < 0 {
		return work(v)
	}
	return v[r.state]
}

func (r *rollup) sub(at int32) int64 { return r.pick(r.at[at].sub) }
func (r *rollup) own(at int32) int64 { return r.pick(r.at[at].excess) }

func (r *rollup) add(at int32, alone bool, excess int64) {
	if float64(excess) >= worth/3*float64(r.total) {
		r.found = append(r.found, place{at: at, alone: alone, state: r.state, excess: excess})
	}
}

// descend finds the places below a path that hold its excess.
func (r *rollup) descend(at int32) {
	for {
		e := r.sub(at)
		if e <= 0 {
			return
		}
		if next := r.heaviest(at); next >= 0 && float64(r.sub(next)) >= holds*float64(e) {
			// A loop that goes round far more often than usual may go another way for that reason: it tries again.
			if m := &r.at[at]; at > 0 && r.newPath(next) && float64(m.calls) >= manyTimes*max(1, m.peerCalls) && r.moreOfAll(at, e) && r.eachRound(at, next) {
				r.add(at, false, e)
				return
			}
			at = next
			continue
		}
		if own := r.own(at); float64(own) >= holds*float64(e) {
			r.add(at, true, own)
			return
		}
		if at > 0 && r.moreOfAll(at, e) {
			r.add(at, false, e)
			return
		}
		r.split(at, e)
		return
	}
}

// cameBy is the lowest new path of a place that calls the place's function again, and holds its excess with what that does: recursion has
// folded this into the place, but it wouldn't be without the new path. It is 0 if there is none.
func (r *rollup) cameBy(p *place) (via int32) {
	if r.newPath(p.at) {
		return 0
	}
	at := p.at
	for next := at; next >= 0; {
		at, next = next, -1
		for _, c := range r.children[at] {
			if m := &r.at[c]; float64(m.whole) >= holds*float64(p.excess) && (next < 0 || m.whole > r.at[next].whole) {
				next = c
			}
		}
	}
	if m := &r.at[at]; at == p.at || !r.newPath(at) || float64(m.subSpent) >= holds*float64(p.excess) {
		return 0
	}
	return at
}

// heaviest is the path called at another with the largest excess, -1 if there is none.
func (r *rollup) heaviest(at int32) int32 {
	best := int32(-1)
	for _, c := range r.children[at] {
		if best < 0 || r.sub(c) > r.sub(best) {
			best = c
		}
	}
	return best
}

// moreOfAll says that what is below a path grew since the path is taken more often, or is new.
func (r *rollup) moreOfAll(at int32, e int64) bool {
	m := &r.at[at]
	if r.newPath(at) {
		return true
	}
	if m.peerCalls == 0 {
		return false
	}
	// By what each of its calls takes: that may be more than usual for the same reason.
	more := (1 - m.peerCalls/float64(max(m.calls, 1))) * float64(m.subSpent)
	return r.state < 0 && float64(m.calls) >= mostOften*m.peerCalls && more >= pure*float64(e)
}

// eachRound says whether what is new below a path is done in most of the rounds by which that is called more often: then it follows from those.
// What takes long once in many rounds is why there are so many, or has nothing to do with them.
func (r *rollup) eachRound(at, next int32) bool {
	for low := next; low >= 0; low = r.heaviest(low) {
		if float64(r.sub(low)) < holds*float64(r.sub(next)) {
			break
		}
		if m := &r.at[at]; 2*float64(r.at[low].calls) < float64(m.calls)-m.peerCalls {
			return false
		}
	}
	return true
}

// mostOften is how many times as often as usual a path is taken at least for all that is below it to have grown for that.
const mostOften = 1.5

// manyTimes is how many times as often as usual, or as once, a loop goes round at least for what is new in it to follow from that.
const manyTimes = 10

// split tells the parts of an excess apart that are worth it.
func (r *rollup) split(at int32, e int64) {
	least := int64(worth * float64(r.total))
	var parts []int32
	rest := e
	for _, c := range r.children[at] {
		if r.sub(c) >= least {
			parts = append(parts, c)
		}
	}
	slices.SortStableFunc(parts, func(a, b int32) int { return cmp.Compare(r.sub(b), r.sub(a)) })
	parts = parts[:min(len(parts), mostParts)]
	for _, c := range parts {
		rest -= r.sub(c)
		r.descend(c)
	}
	if rest < least {
		return
	}
	if own := r.own(at); float64(own) >= holds*float64(rest) {
		r.add(at, true, own)
		return
	}
	r.found = append(r.found, place{at: at, except: parts, state: r.state, excess: rest})
}

// byState takes a place apart by states if no state has most of it.
func (r *rollup) byState(p place) {
	v := r.at[p.at].sub
	if p.alone {
		v = r.at[p.at].excess
	}
	for _, c := range p.except {
		for s := range v {
			v[s] -= r.at[c].sub[s]
		}
	}
	v[reel.StateReady] = 0
	best := largest(v)
	if float64(v[best]) >= pure*float64(sum(v)) || r.newPath(p.at) || len(p.except) > 0 {
		p.state = best
		r.found = append(r.found, p)
		return
	}
	for s := range v {
		if float64(v[s]) < worth*float64(r.total) {
			continue
		}
		r.state = s
		if p.alone {
			r.add(p.at, true, v[s])
		} else {
			r.descend(p.at)
		}
		r.state = -1
	}
}

// mostCrowd is how much longer than it runs a thread may be ready for that to follow from its running: as on a machine on which so many
// others want each processor.
const mostCrowd = 16

// waiting gives the time that the call was ready to the places of the work that it follows from, and makes a place of what is left. Whoever
// works for long on a crowded machine waits in proportion, and what is to be told is the work. That is so where the call does other things or
// more of them than its peers, or works for several times as long as they take in all; else as far as it isn't more than calls wait by
// nature.
func (r *rollup) waiting() {
	left := r.at[0].sub[reel.StateReady]
	if left <= 0 {
		return
	}
	const ready = int(reel.StateReady)
	rest := make([]int64, len(r.list)) // ready time of each path that no place has
	for i := range rest {
		rest[i] = r.at[i].excess[ready]
	}
	for i := range r.found {
		p := &r.found[i]
		if p.state != int(reel.StateRunning) {
			continue
		}
		marks := r.marks(p)
		waited := int64(0)
		for at, v := range rest {
			if marks[at] {
				waited += v
			}
		}
		most := max(1, 2*r.crowd)
		if k := r.kindOf(p); k == NewPath || k == MoreCalls || p.excess >= 3*int64(r.median) {
			most = mostCrowd
		}
		if waited <= 0 || float64(waited) > most*float64(p.excess) {
			continue
		}
		p.excess += waited
		left -= waited
		for at := range rest {
			if marks[at] {
				rest[at] = 0
			}
		}
	}
	if left <= 0 {
		return
	}
	// The lowest path that holds most of it.
	below := slices.Clone(rest)
	for i := len(below) - 1; i > 0; i-- {
		below[r.list[i].parent] += below[i]
	}
	at := int32(0)
	for next := at; next >= 0; {
		at, next = next, -1
		for _, c := range r.children[at] {
			if float64(below[c]) >= holds*float64(left) {
				next = c
			}
		}
	}
	r.found = append(r.found, place{at: at, state: ready, excess: min(left, below[at])})
}
