package viewer

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/callreel/callreel/reel"
)

// treeNode is a function as called by its parent's path.
type treeNode struct {
	function    uint32
	parent      int32
	calls       uint64
	total, self uint64 // ticks
	recent      int32  // the child that was called last: often the next one, too
}

// callTree sums up calls by their paths. Node 0 is the root: no call, but what makes the outermost ones.
type callTree struct {
	nodes []treeNode
	paths *paths
	depth int // calls deeper than that count as their callers' own time
}

// Limits of call trees. A recursive program may have as many paths as calls.
const (
	maxTreeNodes     = 1 << 19 // of 40 bytes, with 24 to 48 bytes to find them by
	defaultTreeDepth = 256
	defaultTreeLimit = 5000
	mostTreeLimit    = 50_000
	smallestShare    = 0.0005 // of the time of all; smaller nodes are merged
)

// othersName is what the nodes that are merged are called; their function is 0.
const othersName = "(others)"

func newCallTree(depth int) *callTree {
	return &callTree{nodes: []treeNode{{parent: -1}}, paths: newPaths(), depth: depth}
}

// child returns the node of a function below a path. When there is no more room, calls of functions that are new to a path go
// to its node of others.
func (t *callTree) child(parent int32, function uint32) int32 {
	if recent := t.nodes[parent].recent; recent != 0 && t.nodes[recent].function == function {
		return recent
	}
	slot := t.paths.find(parent, function)
	i := slot.node
	switch {
	case i != 0:
	case function == 0 && parent != 0 && t.nodes[parent].function == 0:
		i = parent // others are not told apart any further
	case len(t.nodes) >= maxTreeNodes && function != 0:
		i = t.child(parent, 0)
	default:
		i = int32(len(t.nodes))
		t.nodes = append(t.nodes, treeNode{function: function, parent: parent})
		t.paths.add(slot, parent, function, i)
	}
	t.nodes[parent].recent = i
	return i
}

// merge adds another tree.
func (t *callTree) merge(o *callTree) {
	to := make([]int32, len(o.nodes))
	for i := 1; i < len(o.nodes); i++ { // parents come before their children
		from := &o.nodes[i]
		to[i] = t.child(to[from.parent], from.function)
		n := &t.nodes[to[i]]
		n.calls += from.calls
		n.total += from.total
		n.self += from.self
	}
}

// treeCollector makes a call tree of a span.
type treeCollector struct {
	piece  *piece
	stacks *openStacks
	tree   *callTree
	by     string // of which state times are
}

func (c *treeCollector) begin(p *piece) {
	c.piece = p
	c.stacks.clocks.begin(p)
}

func (c *treeCollector) enter(lane uint32, call *reel.Call) {
	s := c.stacks.of(lane, call)
	parent := int32(0)
	if n := len(s.frames); n > 0 {
		parent = s.frames[n-1].node
	}
	node := parent
	if len(s.frames) < c.tree.depth {
		node = c.tree.child(parent, call.Func)
	}
	c.stacks.push(s, call, openFrame{function: call.Func, node: node})
}

func (c *treeCollector) leave(lane uint32, call *reel.Call) {
	s := c.stacks.of(lane, call)
	f := c.stacks.pop(s, c.piece, call)
	n := &c.tree.nodes[f.node]
	n.self += stateOf(c.by, f.self, f.selfStates)
	if len(s.frames) >= c.tree.depth {
		return // its time is its caller's
	}
	n.total += stateOf(c.by, f.total, f.totalStates)
	if c.piece.counts(call) {
		n.calls++
	}
}

func (c *treeCollector) pause(lane uint32, stack int, tick uint64) { c.stacks.pause(lane, stack, tick) }

func (c *treeCollector) resume(lane uint32, stack int, tick uint64) {
	c.stacks.resume(c.piece, lane, stack, tick)
}

// treeNodeJSON is a node as api/tree has it.
type treeNodeJSON struct {
	Func    uint32 `json:"func"`
	Name    string `json:"name"`
	Module  string `json:"module,omitempty"`
	Parent  int    `json:"parent"` // index in the list, -1 for the outermost
	Calls   uint64 `json:"calls"`
	TotalNS uint64 `json:"total_ns"`
	SelfNS  uint64 `json:"self_ns"`
}

// tree is api/tree: the call tree of a range, what took longest first, callers before what they call. With by= times are those in which threads
// were on a processor (cpu), ready or blocked.
func (r *recording) tree(w http.ResponseWriter, q *query) error {
	tl, err := r.wait(q.ctx)
	if err != nil {
		return err
	}
	from, to := q.interval()
	s := span{from, to, q.lanes(len(tl.Lanes()))}
	depth, limit := q.integer("depth", defaultTreeDepth, 1, 1<<20), q.integer("limit", defaultTreeLimit, 1, mostTreeLimit)
	ticket, by := q.ticket(), q.choice("by", byStates...)
	if q.err != nil {
		return q.err
	}
	t, err := r.callTree(q.ctx, s, depth, by, ticket)
	if err != nil {
		return err
	}
	answer := struct {
		Nodes []treeNodeJSON `json:"nodes"`
		Whole int            `json:"whole"` // how many nodes there were before small ones were merged
	}{treeJSON(tl.File(), t.pruned(limit)), len(t.nodes) - 1}
	return writeJSON(w, answer)
}

func (r *recording) callTree(ctx context.Context, s span, depth int, by, ticket string) (*callTree, error) {
	tl, err := r.wait(ctx)
	if err != nil {
		return nil, err
	}
	list, err := r.analyze(ctx, tl, s, ticket, func() collector {
		return &treeCollector{stacks: newOpenStacks(clocksFor(by, tl)), tree: newCallTree(depth), by: by}
	})
	if err != nil {
		return nil, err
	}
	tree := list[0].(*treeCollector).tree
	for _, c := range list[1:] {
		tree.merge(c.(*treeCollector).tree)
	}
	return tree, nil
}

// pruned returns the nodes without the root, callers before what they call and the longest of a caller first. Nodes that are
// too small to be seen, or beyond the limit, are merged into one for each caller.
func (t *callTree) pruned(limit int) []treeNode {
	all := uint64(0)
	totals := make([]uint64, 0, len(t.nodes))
	for i := range t.nodes[1:] {
		n := &t.nodes[i+1]
		if n.parent == 0 {
			all += n.total
		}
		totals = append(totals, n.total)
	}
	smallest := uint64(float64(all) * smallestShare)
	if len(totals) > limit {
		slices.Sort(totals)
		smallest = max(smallest, totals[len(totals)-limit-1]+1) // of equal ones all or none
	}
	children := make([][]int32, len(t.nodes))
	for i := range t.nodes[1:] {
		parent := t.nodes[i+1].parent
		children[parent] = append(children[parent], int32(i+1))
	}
	out := []treeNode{}
	for todo := t.below(nil, children[0], -1, smallest); len(todo) > 0; {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		out = append(out, v.treeNode)
		if v.node != 0 {
			todo = t.below(todo, children[v.node], int32(len(out)-1), smallest)
		}
	}
	return out
}

// treeVisit is a node that is still to be listed.
type treeVisit struct {
	treeNode
	node int32 // 0 for those that are merged
}

// below adds what a node calls to what is to be listed; the longest comes last, for the last is taken up first.
func (t *callTree) below(todo []treeVisit, children []int32, parent int32, smallest uint64) []treeVisit {
	start := len(todo)
	others := treeNode{parent: parent}
	for _, c := range children {
		n := t.nodes[c]
		if n.function == 0 || n.total < smallest {
			others.calls += n.calls
			others.total += n.total
			others.self += n.total
			continue
		}
		n.parent = parent
		todo = append(todo, treeVisit{n, c})
	}
	if others.calls > 0 || others.total > 0 {
		todo = append(todo, treeVisit{others, 0})
	}
	slices.SortStableFunc(todo[start:], func(a, b treeVisit) int { return cmp.Compare(a.total, b.total) })
	return todo
}

func treeJSON(f *reel.File, nodes []treeNode) []treeNodeJSON {
	list := make([]treeNodeJSON, len(nodes))
	naming := newNaming(f)
	for i := range nodes {
		n := &nodes[i]
		name, module := othersName, ""
		if n.function != 0 {
			name, module = naming.of(n.function)
		}
		list[i] = treeNodeJSON{n.function, name, module, int(n.parent), n.calls, f.Clock().Nanoseconds(n.total), f.Clock().Nanoseconds(n.self)}
	}
	return list
}
