package why

import (
	"math"

	"github.com/callreel/callreel/reel"
)

// gathered is what pieces of a call add up to.
type gathered struct {
	t    *tree
	sums []gatheredNode
	seen map[longCall]bool
}

// gatheredNode is a node of which pieces are known.
type gatheredNode struct {
	self                       [4]float64
	calls, whole, minor, major float64
	long                       uint64 // calls that are open at an end of a piece: each counts once
}

// longCall is a call that is open at an end of a piece.
type longCall struct {
	node  int32
	start uint64
}

func newGathered(r *ref, limit int) *gathered {
	return &gathered{t: newTree(r.fn, limit), sums: make([]gatheredNode, 1), seen: map[longCall]bool{}}
}

// node is that of the call's tree that one of a piece's stands for.
func (g *gathered) node(t *tree, at int32) int32 {
	if at == 0 {
		return 0
	}
	to := g.t.below(g.node(t, t.nodes[at].parent), t.nodes[at].fn)
	for len(g.sums) < len(g.t.nodes) {
		g.sums = append(g.sums, gatheredNode{})
	}
	return to
}

const maxLong = 1 << 16

func (g *gathered) long(t *tree, at int32, start uint64) {
	if at == 0 {
		return
	}
	if k := (longCall{g.node(t, at), start}); !g.seen[k] && len(g.seen) < maxLong {
		g.seen[k] = true
		g.sums[k.node].long++
	}
}

// add takes in the tree of a piece.
func (g *gathered) add(t *tree, weight float64) {
	of := make([]int32, len(t.nodes))
	for i := range t.nodes {
		n := &t.nodes[i]
		if i > 0 {
			of[i] = g.t.below(of[n.parent], n.fn)
			for len(g.sums) < len(g.t.nodes) {
				g.sums = append(g.sums, gatheredNode{})
			}
		}
		s, to := &g.sums[of[i]], &g.t.nodes[of[i]]
		for k, v := range n.self {
			s.self[k] += weight * float64(v)
		}
		s.calls += weight * float64(n.calls)
		s.whole += weight * float64(n.whole)
		s.minor += weight * float64(n.minor)
		s.major += weight * float64(n.major)
		if n.to-n.from > to.to-to.from {
			to.from, to.to = n.from, n.to
		}
	}
	for _, x := range t.spans {
		x.node = of[x.node]
		if len(g.t.spans) == maxSpans {
			g.t.spans = longerHalf(g.t.spans)
		}
		g.t.spans = append(g.t.spans, x)
	}
	g.t.cut = g.t.cut || t.cut
}

// tree is the call's tree: as long as the call in each state.
func (g *gathered) tree(f *reel.File, r *ref) *tree {
	exact := states{reel.StateUnknown: r.duration()}
	if f.HasStates() {
		exact = states{}
		c := newStateClock(f, r.thread, r.start)
		for at := r.start; at < r.end; {
			s, ok := c.piece(at, r.end)
			if !ok {
				break
			}
			exact[s.State&3] += s.To - s.From
			at = s.To
		}
	}
	var known [4]float64
	for i := range g.sums {
		for k, v := range g.sums[i].self {
			known[k] += v
		}
	}
	left := exact
	for i := range g.sums {
		s, n := &g.sums[i], &g.t.nodes[i]
		for k, v := range s.self {
			if known[k] > 0 {
				n.self[k] = min(uint64(v/known[k]*float64(exact[k])), left[k])
				left[k] -= n.self[k]
			}
		}
		n.calls = uint64(math.Round(s.calls)) + s.long
		n.whole, n.minor, n.major = uint64(s.whole), uint64(math.Round(s.minor)), uint64(math.Round(s.major))
	}
	for k := range left { // what rounding leaves
		g.t.nodes[0].self[k] += left[k]
	}
	g.t.nodes[0].calls = 1
	return g.t
}
