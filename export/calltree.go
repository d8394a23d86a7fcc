package export

import (
	"context"
	"fmt"
	"math"

	"github.com/callreel/callreel/reel"
)

const (
	// maxTree is how many stacks are told apart at a time, at some 80 bytes each. When there are more, what was counted until then is
	// written and counting begins anew: formats that hold stacks with weights sum up what they hold twice.
	maxTree = 1 << 20
	// maxFrames is how many outer frames a stack has; of calls further in only the innermost is told, behind deepFrame. A recursion
	// without end would have as many stacks as calls, each longer than the one before.
	maxFrames = 1 << 10
	deepFrame = "[deeper calls]"

	noParent  = math.MaxUint32
	deepCall  = math.MaxUint32 // stands for a function's ID; those end at reel.MaxID
	otherCall = math.MaxUint32 - 1
)

// callTree counts calls by stack.
type callTree struct {
	*walk
	nodes  []treeNode
	states []reel.StateTimes // of each node, the parts of self; empty if they aren't wanted
	parts  *treeParts        // nil then
	index  map[uint64]uint32 // by parent and function
	limit  int               // of nodes
	age    uint32            // how often it was written
	roots  []treeRoot
	rootOf map[treeRoot]uint32
	// byThread has threads of different names counted apart.
	byThread bool
	unknown  map[uint32]bool // functions that the reel does not describe
	write    func(*callTree) // writes all nodes
	final    bool            // for the last time
}

// treeNode is a stack: a call inside that of its parent.
type treeNode struct {
	parent uint32 // index; noParent for a root
	fn     uint32 // ID; of a root its number
	calls  uint64
	self   uint64 // ticks
}

// treeRoot is whose calls they are.
type treeRoot struct {
	pid    int
	thread string
}

// treeLane is where a lane is in the tree.
type treeLane struct {
	age  uint32
	root uint32 // number
	open []treeCall
}

type treeCall struct{ node, fn uint32 }

func newCallTree(ctx context.Context, f *reel.File, opt Options) *callTree {
	t := &callTree{walk: newWalk(ctx, f, opt), limit: maxTree, rootOf: make(map[treeRoot]uint32), unknown: make(map[uint32]bool)}
	t.clear()
	return t
}

func (t *callTree) clear() {
	t.nodes, t.states = t.nodes[:0], t.states[:0]
	t.index = make(map[uint64]uint32)
	t.age++
}

// split has times told apart by what the threads did meanwhile.
func (t *callTree) split() {
	t.pairStates = true
	t.parts = &treeParts{clock: t.f.Clock(), of: make(map[uint32]*treePart)}
}

// count walks over the reel and writes what it has counted.
func (t *callTree) count(to string) error {
	t.all(t, false)
	if t.final = true; t.err == nil {
		t.write(t)
	}
	if t.err != nil {
		return fmt.Errorf("export: %s to %s: %w", t.f.Name(), to, t.err)
	}
	return nil
}

func (t *callTree) lane(l *lane) {
	root := treeRoot{pid: l.pid}
	if t.byThread && l.goroutine == 0 {
		root.thread = cut(l.thread.Name, maxName)
	}
	n, ok := t.rootOf[root]
	if !ok {
		n = uint32(len(t.roots))
		t.roots = append(t.roots, root)
		t.rootOf[root] = n
	}
	l.data = &treeLane{root: n}
}

func (t *callTree) begin(l *lane, _ int64, call *reel.Call) {
	if len(t.nodes) >= t.limit && t.err == nil {
		t.write(t)
		t.clear()
	}
	d := l.data.(*treeLane)
	t.renew(d)
	c := treeCall{fn: t.function(call.Func)}
	c.node = t.inside(d, len(d.open), c.fn)
	t.nodes[c.node].calls++
	d.open = append(d.open, c)
}

func (t *callTree) end(l *lane, _ int64, call *reel.Call) {
	d := l.data.(*treeLane)
	t.renew(d)
	n := len(d.open) - 1
	node := d.open[n].node
	t.nodes[node].self += call.Self()
	if t.parts != nil {
		t.states[node] = t.states[node].Plus(call.SelfStates())
	}
	if d.open = d.open[:n]; n == 0 && cap(d.open) > maxFrames {
		d.open = nil
	}
}

// renew finds the place of a lane's open calls in a tree that has begun anew.
func (t *callTree) renew(d *treeLane) {
	if d.age == t.age {
		return
	}
	d.age = t.age
	for k := range d.open {
		d.open[k].node = t.inside(d, k, d.open[k].fn)
	}
}

// inside is the node of a call of fn inside the outermost n open calls.
func (t *callTree) inside(d *treeLane, n int, fn uint32) uint32 {
	parent := uint32(0)
	switch {
	case n == 0:
		parent = t.child(noParent, d.root)
	case n < maxFrames:
		parent = d.open[n-1].node
	default:
		parent = t.child(d.open[maxFrames-1].node, deepCall)
	}
	return t.child(parent, fn)
}

func (t *callTree) child(parent, fn uint32) uint32 {
	key := uint64(parent)<<32 | uint64(fn)
	n, ok := t.index[key]
	if !ok {
		n = uint32(len(t.nodes))
		t.nodes = append(t.nodes, treeNode{parent: parent, fn: fn})
		if t.parts != nil {
			t.states = append(t.states, reel.StateTimes{})
		}
		t.index[key] = n
	}
	return n
}

// counted says whether a node has anything to be told; others are but on the way to such.
func (t *callTree) counted(k int) bool {
	n := &t.nodes[k]
	return n.parent != noParent && (n.calls > 0 || n.self > 0)
}

// function is the function's ID, or otherCall: a damaged reel can have any number of IDs that nothing is known of.
func (t *callTree) function(id uint32) uint32 {
	if _, known := t.f.Function(id); known || t.unknown[id] {
		return id
	}
	if len(t.unknown) >= maxNames {
		return otherCall
	}
	t.unknown[id] = true
	return id
}

// frameName is what a node is called, and its module.
func (t *callTree) frameName(fn uint32) (name, module string) {
	switch fn {
	case deepCall:
		return deepFrame, ""
	case otherCall:
		return otherFunctions, ""
	}
	return t.functionName(fn)
}

func (t *callTree) note(*lane, int64, note)                {}
func (t *callTree) switched(_, _ *lane, _ int64)           {}
func (t *callTree) run(*lane, goroutineRun, *goroutineRun) {}
