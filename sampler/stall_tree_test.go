package sampler

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// framesOf makes a stack, innermost first, of functions called by what stands behind.
func framesOf(names ...string) []Frame {
	out := make([]Frame, len(names))
	for k, n := range names {
		out[k] = Frame{Function: n, Address: uint64(0x1000 + k)}
	}
	return out
}

func TestHeaviestStackFollowsTheMostSamplesInwards(t *testing.T) {
	tree := newCallTree()
	for range 3 {
		tree.add(framesOf("leaf", "a", "main"))
	}
	// More samples in all under b, but no deeper call of it has as many as leaf.
	for k := range 4 {
		tree.add(framesOf("leaf"+strconv.Itoa(k), "b", "main"))
	}
	tree.add(framesOf("leaf2", "b", "main"))
	got := tree.heaviest()
	want := []StallFrame{{Function: "leaf2", Samples: 2}, {Function: "b", Samples: 5}, {Function: "main", Samples: 8}}
	if !slices.EqualFunc(got, want, func(a, b StallFrame) bool { return a.Function == b.Function && a.Samples == b.Samples }) {
		t.Errorf("%+v", got)
	}
}

func TestHeaviestStackOfNoSamplesIsEmpty(t *testing.T) {
	tree := newCallTree()
	tree.add(nil)
	if got := tree.heaviest(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestFrameHasTheAddressOfMostSamples(t *testing.T) {
	tree := newCallTree()
	for k := range 100 {
		f := []Frame{{Function: "f", Address: uint64(k), Line: uint32(k)}}
		if k%3 > 0 {
			f[0].Address, f[0].Line = 0x77, 77
		}
		tree.add(f)
	}
	if got := tree.heaviest(); len(got) != 1 || got[0].Address != 0x77 || got[0].Line != 77 || got[0].Samples != 100 {
		t.Errorf("%+v", got)
	}
}

func TestCodeWithoutNamesIsToldByItsAddress(t *testing.T) {
	tree := newCallTree()
	for _, addr := range []uint64{1, 2, 2} {
		tree.add([]Frame{{Address: addr}})
	}
	if got := tree.heaviest(); len(got) != 1 || got[0].Address != 2 || got[0].Samples != 2 {
		t.Errorf("%+v", got)
	}
}

func TestCallTreeOfManyStacksIsBounded(t *testing.T) {
	tree := newCallTree()
	r := rand.New(rand.NewPCG(1, 2))
	const samples = 2000
	for range samples {
		stack := make([]Frame, 200)
		for k := range stack {
			stack[k] = Frame{Address: r.Uint64()}
		}
		stack[len(stack)-1] = Frame{Function: "main"}
		tree.add(stack)
	}
	if len(tree.nodes) > maxStallNodes || len(tree.index) != len(tree.nodes) {
		t.Errorf("%d nodes, %d keys", len(tree.nodes), len(tree.index))
	}
	got := tree.heaviest()
	if outermost := got[len(got)-1]; outermost.Function != "main" || outermost.Samples != samples {
		t.Errorf("%+v", outermost)
	}
}
