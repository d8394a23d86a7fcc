package viewer

import "github.com/callreel/callreel/reel"

// openFrame is a call that is open in a replay.
type openFrame struct {
	function  uint32
	outermost bool   // no other call of the function is open around it
	inside    uint64 // ticks within the piece that calls made by it were open
	node      int32  // of a call tree
	// What its thread had done when it began, and what it did in the time that inside counts.
	entry, insideStates reel.StateTimes
}

// openStacks are the calls that are open in a replay, stack by stack.
type openStacks struct {
	clocks  *laneClocks // nil if no states are known
	current *openStack
	others  map[stackKey]*openStack // those that have open calls, but for the current one
	free    []*openStack
}

type stackKey struct {
	lane  uint32
	stack int
}

type openStack struct {
	key    stackKey
	frames []openFrame
	waits  bool   // for another stack of its lane
	since  uint64 // tick of that
	// What its thread had done by then.
	sinceStates reel.StateTimes
}

func newOpenStacks(clocks *laneClocks) *openStacks {
	return &openStacks{clocks: clocks, current: &openStack{}, others: map[stackKey]*openStack{}}
}

// of returns the stack that a call is on.
func (s *openStacks) of(lane uint32, c *reel.Call) *openStack {
	key := stackKey{lane, c.Stack}
	if s.current.key == key {
		return s.current
	}
	if len(s.current.frames) > 0 {
		s.others[s.current.key] = s.current
	} else {
		s.free = append(s.free, s.current)
	}
	next := s.others[key]
	delete(s.others, key)
	if next == nil {
		next = &openStack{}
		if n := len(s.free); n > 0 {
			next, s.free = s.free[n-1], s.free[:n-1]
		}
		next.key, next.waits = key, false
	}
	s.current = next
	return next
}

// known returns a stack that has open calls, or nil.
func (s *openStacks) known(lane uint32, stack int) *openStack {
	key := stackKey{lane, stack}
	if s.current.key == key {
		return s.current
	}
	return s.others[key]
}

// pause lets the innermost call of a stack wait.
func (s *openStacks) pause(lane uint32, stack int, tick uint64) {
	if o := s.known(lane, stack); o != nil {
		o.waits, o.since, o.sinceStates = true, tick, s.clocks.at(lane, tick)
	}
}

// resume lets it go on.
func (s *openStacks) resume(p *piece, lane uint32, stack int, tick uint64) {
	if o := s.known(lane, stack); o != nil {
		s.waited(o, p, tick)
		o.waits = false
	}
}

// waited counts what the stack has waited within the piece, up to a tick, as time that its innermost call did not spend itself.
func (s *openStacks) waited(o *openStack, p *piece, tick uint64) {
	if n := len(o.frames); n > 0 && o.waits {
		start, end := max(o.since, p.start), min(tick, p.end)
		f := &o.frames[n-1]
		f.inside += end - min(start, end)
		o.since = max(o.since, tick)
		if s.clocks != nil {
			now := s.clocks.at(o.key.lane, tick)
			f.insideStates = f.insideStates.Plus(now.Minus(o.sinceStates))
			o.sinceStates = now
		}
	}
}

// push opens a call, which is c.
func (s *openStacks) push(o *openStack, c *reel.Call, f openFrame) {
	if s.clocks != nil {
		f.entry = s.clocks.at(o.key.lane, c.Start)
	}
	o.frames = append(o.frames, f)
}

// left is a call that has ended.
type left struct {
	openFrame
	total, self             uint64 // ticks within the piece
	totalStates, selfStates reel.StateTimes
}

// pop ends the innermost call of a stack, which is c. Without one, in a reel that is damaged in some way, it is an empty one.
func (s *openStacks) pop(o *openStack, p *piece, c *reel.Call) left {
	n, within := len(o.frames), p.within(c)
	if n == 0 {
		return left{total: within, self: within}
	}
	s.waited(o, p, c.End)
	f := left{openFrame: o.frames[n-1], total: within}
	f.self = within - min(within, f.inside)
	if s.clocks != nil {
		f.totalStates = s.clocks.at(o.key.lane, c.End).Minus(f.entry)
		f.selfStates = f.totalStates.Minus(f.insideStates)
	}
	o.frames = o.frames[:n-1]
	if n > 1 {
		around := &o.frames[n-2]
		around.inside += within
		around.insideStates = around.insideStates.Plus(f.totalStates)
	}
	return f
}

// has says whether a call of the function is open on the stack.
func (s *openStack) has(function uint32) bool {
	for i := range s.frames {
		if s.frames[i].function == function {
			return true
		}
	}
	return false
}

// activity counts the open calls of each function on each stack of a lane.
type activity struct {
	known []uint32           // on the first stack, by ID
	other map[onStack]uint32 // on other stacks, and of IDs that the reel's table doesn't have
}

type onStack struct {
	stack    int
	function uint32
}

func newActivity(functions int) *activity {
	return &activity{known: make([]uint32, functions+1), other: map[onStack]uint32{}}
}

// enter says whether no other call of the function is open on the stack.
func (a *activity) enter(function uint32, stack int) bool {
	if stack == 0 && int(function) < len(a.known) {
		a.known[function]++
		return a.known[function] == 1
	}
	key := onStack{stack, function}
	a.other[key]++
	return a.other[key] == 1
}

func (a *activity) leave(function uint32, stack int) {
	if stack == 0 && int(function) < len(a.known) {
		a.known[function]--
		return
	}
	key := onStack{stack, function}
	if a.other[key]--; a.other[key] == 0 {
		delete(a.other, key)
	}
}
