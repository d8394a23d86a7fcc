package why

import (
	"math"
	"slices"

	"github.com/callreel/callreel/reel"
)

// paths are those of several trees, callers before what they call.
type paths struct {
	list  []path
	edges edges
}

type path struct {
	fn       uint32
	parent   int32
	children bool
}

// intern adds a tree's paths, and returns which path each of its nodes is.
func (p *paths) intern(t *tree) []int32 {
	of := make([]int32, len(t.nodes))
	for i := range t.nodes {
		n := &t.nodes[i]
		if n.parent < 0 {
			if len(p.list) == 0 {
				p.list = append(p.list, path{fn: n.fn, parent: -1})
			}
			continue
		}
		e := edge{of[n.parent], n.fn}
		at, ok := p.edges.get(e)
		if !ok {
			at = int32(len(p.list))
			p.list = append(p.list, path{fn: n.fn, parent: e.parent})
			p.edges.put(e, at)
			p.list[e.parent].children = true
		}
		of[i] = at
	}
	return of
}

// aligned is a call's tree beside those of its peers.
type aligned struct {
	paths
	slow   placed
	peers  []placed // ordinary calls, which the excess is measured against
	others []placed // a sample of all other calls, for their scatter
	median uint64   // duration of all other calls, in ticks
	at     []measure
	crowd  float64 // how long calls are ready for each tick that they run, on average
}

// placed is a tree and which path each of its nodes is.
type placed struct {
	*tree
	ref
	of []int32
}

// measure is what of the excess is in a path, the paths below it left out. Times are in ticks.
type measure struct {
	calls     uint64  // of the call
	peerCalls float64 // of a peer, on average
	with      int     // how many peers go there
	spent     states
	usual     [4]int64 // of the peers
	excess    [4]int64
	// The same with all paths below it.
	sub      [4]int64
	subSpent uint64
	subUsual [4]int64
	whole    uint64 // of the call: with what recursion has folded into callers, too
	node     int32  // of the call's tree, -1 if it doesn't go there
}

func sum(v [4]int64) int64 { return v[0] + v[1] + v[2] + v[3] }

// align measures a call against its peers. median is that of all other calls: the excess of all paths together is what the call took
// longer, exactly.
func align(slow placed, peers []placed, median uint64) *aligned {
	a := &aligned{slow: slow, peers: peers, median: median}
	a.slow.of = a.intern(slow.tree)
	for i := range peers {
		peers[i].of = a.intern(peers[i].tree)
	}
	a.at = make([]measure, len(a.list))
	mean := make([][4]float64, len(a.list))
	seen := make([]int32, len(a.list)) // by which peer, from 1
	total := 0.0
	for i := range peers {
		for k := range peers[i].nodes {
			n, at := &peers[i].nodes[k], peers[i].of[k]
			m := &a.at[at]
			m.peerCalls += float64(n.calls)
			if seen[at] != int32(i+1) {
				seen[at] = int32(i + 1)
				m.with++
			}
			for s, v := range n.self {
				mean[at][s] += float64(v)
				total += float64(v)
			}
		}
	}
	count := float64(max(1, len(peers)))
	scale := 0.0
	if total > 0 {
		scale = float64(median) / total
	}
	left := int64(median)
	for i := range a.at {
		m := &a.at[i]
		m.node = -1
		m.peerCalls /= count
		for s := range m.usual {
			m.usual[s] = int64(math.Round(mean[i][s] * scale))
			left -= m.usual[s]
		}
	}
	// What rounding leaves is the call's own.
	m := &a.at[0]
	m.usual[largest(m.usual)] += left
	for k := range slow.nodes {
		n := &slow.nodes[k]
		m := &a.at[a.slow.of[k]]
		m.calls += n.calls
		m.whole += n.whole
		m.node = int32(k)
		for s, v := range n.self {
			m.spent[s] += v
		}
	}
	for i := len(a.at) - 1; i >= 0; i-- {
		m := &a.at[i]
		for s := range m.excess {
			m.excess[s] = int64(m.spent[s]) - m.usual[s]
			m.sub[s] += m.excess[s]
			m.subUsual[s] += m.usual[s]
		}
		m.subSpent += m.spent.sum()
		if up := a.list[i].parent; up >= 0 {
			o := &a.at[up]
			for s := range m.sub {
				o.sub[s] += m.sub[s]
				o.subUsual[s] += m.subUsual[s]
			}
			o.subSpent += m.subSpent
		}
	}
	return a
}

func largest(v [4]int64) int {
	at := 0
	for i := range v {
		if v[i] > v[at] {
			at = i
		}
	}
	return at
}

// newPath says that peers don't go to a path, as a rule.
func (a *aligned) newPath(at int32) bool {
	m := &a.at[at]
	return m.calls > 0 && m.with*20 <= len(a.peers)
}

// kindParts is an excess by kinds, in ticks.
type kindParts struct{ more, slower, fresh, missing, self int64 }

// addKinds splits the excess of a path without those below it: what more calls of the same come to, and so on. The parts add up to it.
func (a *aligned) addKinds(to *kindParts, at int32) {
	m := &a.at[at]
	e := sum(m.excess)
	switch {
	case at == 0:
		to.self += e
	case a.newPath(at):
		to.fresh += e
	case m.calls == 0:
		to.missing += e
	default:
		more := int64(math.Round((float64(m.calls) - m.peerCalls) * float64(sum(m.usual)) / m.peerCalls))
		to.more += more
		if a.list[at].children {
			to.self += e - more
		} else {
			to.slower += e - more
		}
	}
}

// path lists the functions from below the call down to a path.
func (a *aligned) path(at int32) []uint32 {
	var list []uint32
	for ; at > 0; at = a.list[at].parent {
		list = append(list, a.list[at].fn)
	}
	slices.Reverse(list)
	return list
}

// marks marks the paths of a place.
func (a *aligned) marks(p *place) []bool {
	marks := make([]bool, len(a.list))
	marks[p.at] = true
	if p.alone {
		return marks
	}
	for i := int(p.at) + 1; i < len(a.list); i++ {
		marks[i] = marks[a.list[i].parent] && !slices.Contains(p.except, int32(i))
	}
	return marks
}

// spentIn is what a call spent in marked paths.
func (p *placed) spentIn(marks []bool) (s states) {
	for i := range p.nodes {
		if at := p.of[i]; at >= 0 && marks[at] {
			for k, v := range p.nodes[i].self {
				s[k] += v
			}
		}
	}
	return s
}

// callsOf is how often a call went to a path.
func (p *placed) callsOf(at int32) (n uint64) {
	for i := range p.nodes {
		if p.of[i] == at {
			n += p.nodes[i].calls
		}
	}
	return n
}

// stateNames are the states as JSON has them.
func stateName(s int) string { return reel.RunState(s).String() }
