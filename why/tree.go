package why

import "github.com/callreel/callreel/reel"

// states is a time by what the thread did, in ticks; by reel.RunState.
type states [4]uint64

func (s *states) sum() uint64 { return s[0] + s[1] + s[2] + s[3] }

// tree is what one call consists of: the paths of calls below it. Recursion is folded: a path names each function once.
type tree struct {
	nodes []node // the call itself first, callers before what they call
	edges edges
	spans []stretch // the longest stretches in which it didn't run
	cut   bool      // there were too many paths: what is deeper counts as its caller's own
	limit int
	part  float64 // how much of the call was read; 0 for all
}

type edge struct {
	parent int32
	fn     uint32
}

// node is a path.
type node struct {
	fn     uint32
	parent int32
	depth  int32
	calls  uint64
	self   states // own time
	// whole is the time of its outermost calls with all that they called, in ticks: also that which recursion has folded into a caller.
	whole  uint64
	nested int // how many of its calls are open
	// The longest time that it was in the place at a stretch.
	from, to uint64
	// last is the edge that was taken last, which is taken again as a rule.
	lastFn uint32
	last   int32
	// minor and major are page faults.
	minor, major uint64
}

// stretch is a time in which a thread wasn't running.
type stretch struct {
	reel.StateInterval
	node   int32
	thread uint32
}

const (
	maxNodes   = 1 << 16 // of the call that is explained
	peerNodes  = 1 << 12 // of a peer
	maxDepth   = 256     // of a path
	maxSpans   = 4096    // of a tree
	otherStack = 0       // the function of a node that stands for another stack of the thread
)

func newTree(fn uint32, limit int) *tree {
	return &tree{nodes: []node{{fn: fn, parent: -1, last: -1}}, limit: limit}
}

// below is the node of a function that is called at a node; which may be that of a caller that is the same function.
func (t *tree) below(at int32, fn uint32) int32 {
	n := &t.nodes[at]
	if n.last >= 0 && n.lastFn == fn {
		return n.last
	}
	e := edge{at, fn}
	to, ok := t.edges.get(e)
	if !ok {
		to = t.add(at, fn)
		if t.edges.used < 4*t.limit {
			t.edges.put(e, to)
		}
	}
	n = &t.nodes[at]
	n.lastFn, n.last = fn, to
	return to
}

func (t *tree) add(at int32, fn uint32) int32 {
	for k := at; k >= 0; k = t.nodes[k].parent {
		if t.nodes[k].fn == fn {
			return k
		}
	}
	if len(t.nodes) >= t.limit || t.nodes[at].depth >= maxDepth {
		t.cut = true
		return at
	}
	t.nodes = append(t.nodes, node{fn: fn, parent: at, depth: t.nodes[at].depth + 1, last: -1})
	return int32(len(t.nodes) - 1)
}

// total is the time of the whole call.
func (t *tree) total() (s states) {
	for i := range t.nodes {
		for k, v := range t.nodes[i].self {
			s[k] += v
		}
	}
	return s
}

// clock says what a thread, or a goroutine, did from one moment to the next. It is asked with moments that don't go back.
type clock interface {
	// piece returns what it did from a tick on, up to another at the latest. Where the clock leaves something out it begins later; ok is false
	// if nothing comes before to.
	piece(from, to uint64) (s reel.StateInterval, ok bool)
}

// stateClock is the clock of a thread.
type stateClock struct {
	r    *reel.StateReader
	cur  reel.StateInterval
	have bool
	done bool
}

// newStateClock returns the clock of a thread from a tick on.
func newStateClock(f *reel.File, thread uint32, from uint64) *stateClock {
	c := &stateClock{r: f.States(thread)}
	c.r.Seek(from)
	return c
}

// piece implements clock.
func (c *stateClock) piece(from, to uint64) (s reel.StateInterval, ok bool) {
	for !c.done && (!c.have || c.cur.To <= from) {
		c.cur, c.have = c.r.Next()
		c.done = !c.have
	}
	s = reel.StateInterval{From: from, To: to, CPU: -1}
	switch {
	case c.done:
	case c.cur.From >= to:
	case c.cur.From > from:
		s.To = c.cur.From
	default:
		s = c.cur
		s.From, s.To = from, min(to, c.cur.To)
	}
	return s, from < to
}

// builder makes the tree of one call from the events of its thread.
type builder struct {
	t      *tree
	clock  clock
	thread uint32
	stack  int       // that the call is on
	depth  int       // of the call on it
	open   [][]frame // of each stack, what is open of the tree, outermost first
	cur    int32     // innermost node
	from   uint64    // where it begins in the midst of the call; else 0
	now    uint64    // up to when time is charged
	last   uint64    // when the call ends
	faults []reel.Fault
	holds  map[uint32]reel.RunState       // functions in which a goroutine does something whatever its thread does
	long   func(node int32, start uint64) // told of calls that had begun before from; may be nil
	began  bool
	done   bool
}

// frame is an open call of the tree.
type frame struct {
	node  int32
	depth int // on its stack
	start uint64
}

// begin starts the tree with its call.
func (b *builder) begin(c *reel.Call) {
	b.stack, b.depth = c.Stack, c.Depth
	b.down(c.Stack, frame{0, c.Depth, c.Start})
	b.t.nodes[0].calls = 1
}

func (b *builder) down(stack int, f frame) {
	for len(b.open) <= stack {
		b.open = append(b.open, nil)
	}
	b.open[stack] = append(b.open[stack], f)
	b.t.nodes[f.node].nested++
	b.cur = f.node
}

// spend charges the time up to a tick to the innermost node.
func (b *builder) spend(to uint64) {
	if to = min(to, b.last); to <= b.now {
		return
	}
	n := &b.t.nodes[b.cur]
	for len(b.faults) > 0 && b.faults[0].Time < to {
		if b.faults[0].Major {
			n.major++
		} else {
			n.minor++
		}
		b.faults = b.faults[1:]
	}
	if b.clock == nil {
		n.self[reel.StateUnknown] += to - b.now
		b.now = to
		return
	}
	held, isHeld := b.holds[n.fn]
	if isHeld {
		s := reel.StateInterval{From: b.now, To: to, State: held, CPU: -1}
		n.self[held] += to - b.now
		b.stretch(&s)
		b.now = to
		return
	}
	if c, ok := b.clock.(*stateClock); ok && c.have && c.cur.From <= b.now && to <= c.cur.To && c.cur.State == reel.StateRunning { // as a rule
		n.self[reel.StateRunning] += to - b.now
		b.now = to
		return
	}
	for at := b.now; at < to; {
		s, ok := b.clock.piece(at, to)
		if !ok {
			break
		}
		n.self[s.State&3] += s.To - s.From
		if s.State == reel.StateBlocked || s.State == reel.StateReady {
			b.stretch(&s)
		}
		at = s.To
	}
	b.now = to
}

// stretch notes a stretch in which the thread didn't run.
func (b *builder) stretch(s *reel.StateInterval) {
	list := b.t.spans
	if n := len(list); n > 0 {
		l := &list[n-1]
		if l.node == b.cur && l.To == s.From && l.State == s.State && l.Waker == s.Waker {
			l.To = s.To
			return
		}
	}
	x := stretch{StateInterval: *s, node: b.cur, thread: b.thread}
	if len(list) < maxSpans {
		b.t.spans = append(list, x)
		return
	}
	// The shorter half gives way.
	b.t.spans = append(longerHalf(list), x)
}

// entered takes a call that begins.
func (b *builder) entered(c *reel.Call) {
	b.spend(c.Start)
	b.down(c.Stack, frame{b.t.below(b.cur, c.Func), c.Depth, c.Start})
	b.t.nodes[b.cur].calls++
}

// left takes a call that ends; done says that it is the tree's own.
func (b *builder) left(c *reel.Call) (done bool) {
	if c.Stack >= len(b.open) {
		return false
	}
	open := b.open[c.Stack]
	n := len(open)
	if n == 0 || open[n-1].depth != c.Depth {
		return false // it was open before
	}
	b.spend(c.End)
	f := open[n-1]
	node := &b.t.nodes[f.node]
	if c.End-f.start > node.to-node.from {
		node.from, node.to = f.start, c.End
	}
	if node.nested--; node.nested == 0 {
		node.whole += c.End - max(f.start, min(b.from, c.End))
	}
	if f.start < b.from && b.long != nil {
		b.long(f.node, f.start)
	}
	b.open[c.Stack] = open[:n-1]
	if c.Stack == b.stack && c.Depth == b.depth {
		b.done = true
		return true
	}
	b.inner(c.Stack)
	return false
}

// inner makes the innermost open call of a stack the current node.
func (b *builder) inner(stack int) {
	for _, s := range [...]int{stack, b.stack} {
		if s < len(b.open) && len(b.open[s]) > 0 {
			b.cur = b.open[s][len(b.open[s])-1].node
			return
		}
	}
}

// switched takes another stack's becoming the current one: a signal handler's, another coroutine's. What it does is below the call that
// waits for it.
func (b *builder) switched(to int, tick uint64) {
	b.spend(tick)
	if to == b.stack || to < len(b.open) && len(b.open[to]) > 0 {
		b.inner(to)
		return
	}
	b.cur = b.t.below(b.cur, otherStack)
}
