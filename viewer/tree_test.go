package viewer

import (
	"fmt"
	"testing"

	"github.com/callreel/callreel/reel"
)

func TestPathsAreToldApart(t *testing.T) {
	p := newPaths()
	const parents, functions = 200, 150
	for node := range int32(parents * functions) {
		parent, function := node/functions, uint32(node%functions)<<20
		s := p.find(parent, function)
		if s.node != 0 {
			t.Fatalf("%d/%d is there before it was added", parent, function)
		}
		p.add(s, parent, function, node+1)
	}
	for node := range int32(parents * functions) {
		if got := p.find(node/functions, uint32(node%functions)<<20).node; got != node+1 {
			t.Fatalf("path %d is found as %d", node+1, got)
		}
	}
}

// Whatever has no room of its own is in the tree all the same.
func TestCallTreeOfMorePathsThanItHasRoomForKeepsTheTime(t *testing.T) {
	c := &treeCollector{stacks: newOpenStacks(nil), tree: newCallTree(defaultTreeDepth)}
	c.begin(&piece{start: 0, end: 1 << 60, first: true})
	const each, calls = 10, maxTreeNodes + 1000
	at := uint64(0)
	for i := range calls {
		outer := reel.Call{Func: 1, Start: at}
		inner := reel.Call{Func: uint32(2 + i), Depth: 1, Start: at}
		c.enter(0, &outer)
		c.enter(0, &inner)
		at += each
		inner.End, outer.End = at, at
		c.leave(0, &inner)
		c.leave(0, &outer)
	}
	if n := len(c.tree.nodes); n > maxTreeNodes+2 {
		t.Errorf("%d nodes", n)
	}
	for _, limit := range []int{1, 100, mostTreeLimit} {
		list := c.tree.pruned(limit)
		if len(list) > limit+2 {
			t.Errorf("%d nodes where %d were asked for", len(list), limit)
		}
		total, inside, count := uint64(0), uint64(0), uint64(0)
		for _, n := range list {
			if n.parent < 0 {
				total += n.total
			} else {
				inside += n.total
				count += n.calls
			}
		}
		if total != each*calls || inside != each*calls || count != calls {
			t.Errorf("limit %d: %d ns in all, %d inside, in %d calls; want %d, %d", limit, total, inside, count, each*calls, calls)
		}
	}
}

func TestCallTreeOfDeepRecursionStopsAtItsDepth(t *testing.T) {
	const depth = 1000
	path := madeReel(t, []string{"again"}, func(w *reel.Writer) {
		var events []reel.Event
		for i := range uint32(depth) {
			events = append(events, reel.Entry(2000+uint64(i), 0x7fff0000-16*i, 1))
		}
		for i := range uint32(depth) {
			events = append(events, reel.Exit(5000+uint64(i), 0x7fff0000-16*(depth-1-i), 1))
		}
		thread(t, w, "main", events...)
	})
	c := serveReels(t, path)
	for _, most := range []int{1, 10, 999, 5000} {
		nodes := ask[treeAnswer](c, fmt.Sprintf("tree?depth=%d", most)).Nodes
		self := uint64(0)
		for _, n := range nodes {
			self += n.SelfNS
		}
		if len(nodes) != min(most, depth) || self != nodes[0].TotalNS {
			t.Errorf("depth %d: %d nodes, %d ns of %d are somebody's own", most, len(nodes), self, nodes[0].TotalNS)
		}
	}
}
