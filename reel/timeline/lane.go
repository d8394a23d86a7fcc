package timeline

import "github.com/callreel/callreel/reel"

// lane is a lane as it is indexed. All its times are ticks from the
// recording's start.
//
// Its events are cut into segments, each of whole chunks (of goroutines: of a
// batch of all threads' events). A call that begins and ends in one segment
// is known to that segment only; a call that is open where a segment ends is a
// span, and kept here.
type lane struct {
	Lane
	segments []segment
	spans    []span  // in order of the segments that they began in
	rows     []int32 // of each stack
	gaps     []gap
	resume   *resumePoint // of the last segment, while the reel grows
	tail     []interval   // calls at depth 0 that the snapshot's columns don't have
	open     bool         // calls are open at the end
	current  uint16       // stack at the end
	states   *laneStates  // of its thread, nil if there are none
	tops     []uint32     // where its stacks are known to begin, if they are neighbours

	chunks, drops int    // how many chunks and drops it was made from
	weight        uint64 // events, as its chunks say
}

// segment is a stretch of a lane's events.
type segment struct {
	id         uint64 // for the cache
	start, end uint64 // times of its first and last event
	chunk      uint32 // index of its first chunk in the thread, or of its batch
	chunks     uint32 // how many chunks it has; 0 in a batch
	events     uint32
	firstSpan  uint32 // index of the first span that began in it
	summary    []byte // see summary.go

	// What was open before its first event.
	current uint16
	floor   uint32
	stamp   uint64
	now     uint64 // tick
	stacks  []stackTop
}

// stackTop is a stack as a segment finds it.
type stackTop struct {
	sp       uint32 // the highest that is its own
	switched uint64
	since    uint64 // tick
	top      int32  // span that is the innermost open call, or -1
}

// span is a call that is open at the end of the segment in which it began.
type span struct {
	start, end, inside uint64
	fn, sp             uint32
	around             int32 // index of the span around it, or -1
	depth              int32
	stack              uint16
	flags              reel.CallFlags
}

type gap struct {
	start, end, events uint64
}

// rowKey names a row independently of how many rows the stacks before have.
type rowKey uint32

// depthBits are enough for reel.DefaultMaxOpen calls on each of reel.MaxStacks stacks.
const (
	depthBits = 20
	depthMask = 1<<depthBits - 1
)

func keyOf(stack, depth int) rowKey { return rowKey(stack<<depthBits | depth) }

func (k rowKey) stack() int { return int(k >> depthBits) }
func (k rowKey) depth() int { return int(k & depthMask) }

// key is the key of a row; ok says that there is such a row.
func (l *lane) key(row int) (k rowKey, ok bool) {
	if row < 0 {
		return 0, false
	}
	for stack, n := range l.rows {
		if row < int(n) {
			return keyOf(stack, row), true
		}
		row -= int(n)
	}
	return 0, false
}

// row is the inverse of key.
func (l *lane) row(k rowKey) int {
	row := k.depth()
	for _, n := range l.rows[:min(k.stack(), len(l.rows))] {
		row += int(n)
	}
	return row
}

// need makes room for a row.
func (l *lane) need(stack, depth int) {
	for len(l.rows) <= stack {
		l.rows = append(l.rows, 0)
	}
	l.rows[stack] = max(l.rows[stack], int32(depth+1))
}

// spansOf are the spans that began in a segment: indices from and to.
func (l *lane) spansOf(i int) (from, to uint32) {
	to = uint32(len(l.spans))
	if i+1 < len(l.segments) {
		to = l.segments[i+1].firstSpan
	}
	return l.segments[i].firstSpan, to
}

// openAt finds the span that is open in a row where a segment begins, or -1.
func (l *lane) openAt(s *segment, k rowKey) int32 {
	if k.stack() >= len(s.stacks) {
		return -1
	}
	i := s.stacks[k.stack()].top
	for i >= 0 && l.spans[i].depth > int32(k.depth()) {
		i = l.spans[i].around
	}
	if i >= 0 && l.spans[i].depth < int32(k.depth()) {
		return -1
	}
	return i
}

// state is what a Pairer needs to go on from where the segment begins.
func (l *lane) state(s *segment) reel.PairerState {
	st := reel.PairerState{Current: int(s.current), Floor: s.floor, Stamp: s.stamp, Now: s.now, Stacks: make([]reel.StackState, len(s.stacks))}
	for i, top := range s.stacks {
		open := make([]reel.OpenCall, 0)
		if top.top >= 0 {
			open = make([]reel.OpenCall, l.spans[top.top].depth+1)
		}
		for k := top.top; k >= 0; k = l.spans[k].around {
			sp := &l.spans[k]
			open[sp.depth] = reel.OpenCall{SP: sp.sp, Func: sp.fn, Start: sp.start}
		}
		st.Stacks[i] = reel.StackState{Top: top.sp, Switched: top.switched, Since: top.since, Open: open}
	}
	return st
}

// openSpans are the indices of the spans that are open where a segment begins, by stack and depth.
func (l *lane) openSpans(s *segment) [][]int32 {
	open := make([][]int32, len(s.stacks))
	for i, top := range s.stacks {
		if top.top < 0 {
			continue
		}
		open[i] = make([]int32, l.spans[top.top].depth+1)
		for k := top.top; k >= 0; k = l.spans[k].around {
			open[i][l.spans[k].depth] = k
		}
	}
	return open
}
