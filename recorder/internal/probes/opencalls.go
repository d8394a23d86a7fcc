package probes

import (
	"math"
	"slices"

	"github.com/callreel/callreel/reel"
)

// OpenCalls are the calls of one thread that its recorded events leave open, as far as that matters for switching functions off: a call
// may stay in the list after an exception has left it, until there is an event near above it.
//
// They are kept by the part of the address space that their frames are in, so that an event costs as much whatever the number of stacks.
// Within a part each call is below the one before it: an entry ends what is at its height or lower.
//
// It is bounded: events are the target's to write. Of calls that it has no room for, exits are taken for such without an entry.
type OpenCalls struct {
	parts map[uint32]*openPart // by the upper bits of the stack pointer
	count int                  // calls, and partCost for each part
	spare *openPart            // one without calls, to be used again
	late  []openCall           // of the events at hand, from the last on
	all   *int                 // what all such lists have of count, nil if nobody counts
	near  near
}

// near is the part that an event was in last, and the one below it, as nearly all of a thread's events are in the same: nil for those that
// aren't there. Where it isn't known nothing of it holds.
type near struct {
	known    bool
	part     uint32
	p, below *openPart
}

// at is a part, and the one below it, nil for those that aren't there.
func (o *OpenCalls) at(part uint32) (p, below *openPart) {
	if n := &o.near; !n.known || n.part != part {
		*n = near{true, part, o.parts[part], o.parts[under(part)]}
	}
	return o.near.p, o.near.below
}

// under is the part below one.
func under(part uint32) uint32 { return (part - 1) & (1<<(32-partBits) - 1) }

type openCall struct{ sp, id uint32 }

// openPart has the open calls of one part of the address space, innermost last.
type openPart struct{ calls []openCall }

const (
	// partBits are the bits of a stack pointer within a part.
	partBits = 16
	// sameStack is how far above a call an event may be that ends it: no further than the next part.
	sameStack = 1 << partBits
	// partCost is what a part takes, in calls of 8 bytes.
	partCost = 12
	// maxOpenCalls is how many calls of a thread may be open.
	maxOpenCalls = 1 << 19
	// maxAllOpen is how many of all threads may be.
	maxAllOpen = 1 << 21
)

// push adds a call, if there is room, and ends those of its part that are not above it.
func (o *OpenCalls) push(c openCall) {
	p, _ := o.at(c.sp >> partBits)
	if p != nil {
		o.cut(p, c.sp, 0) // where the part has calls none is below another
	}
	cost := 1
	if p == nil {
		cost += partCost
	}
	if o.count+cost > maxOpenCalls || o.all != nil && *o.all+cost > maxAllOpen {
		o.drop(c.sp >> partBits)
		return
	}
	if p == nil {
		if o.parts == nil {
			o.parts = map[uint32]*openPart{}
		}
		if p = o.spare; p == nil {
			p = &openPart{}
		}
		o.spare, o.near.known = nil, false
		o.parts[c.sp>>partBits] = p
	}
	p.calls = append(p.calls, c)
	o.add(cost)
}

func (o *OpenCalls) add(n int) {
	o.count += n
	if o.all != nil {
		*o.all += n
	}
}

// cut ends the calls of a part whose stack pointers are at least margin below sp, from the innermost on.
func (o *OpenCalls) cut(p *openPart, sp uint32, margin int32) {
	n := len(p.calls)
	for n > 0 && int32(sp-p.calls[n-1].sp) >= margin {
		n--
	}
	o.add(n - len(p.calls))
	p.calls = p.calls[:n]
}

// drop forgets a part without calls.
func (o *OpenCalls) drop(part uint32) {
	if p := o.parts[part]; p != nil && len(p.calls) == 0 {
		delete(o.parts, part)
		o.spare, o.near.known = p, false
		o.add(-partCost)
	}
}

// CountIn adds to all, which several lists may share, how many calls are open; all of them together are bounded.
func (o *OpenCalls) CountIn(all *int) { o.all = all }

// Clone returns another list with the same calls, which counts in nothing.
func (o *OpenCalls) Clone() *OpenCalls {
	c := &OpenCalls{count: o.count, parts: make(map[uint32]*openPart, len(o.parts))}
	for k, p := range o.parts {
		c.parts[k] = &openPart{slices.Clone(p.calls)}
	}
	return c
}

// Take adds calls that are open, by their entries, outermost first.
func (o *OpenCalls) Take(entries []reel.Event) { o.pass(entries) }

// Forget empties the list, as its thread has ended.
func (o *OpenCalls) Forget() {
	o.add(-o.count)
	o.parts, o.spare, o.late, o.near = nil, nil, nil, near{}
}

// Functions calls yield with the function of each call.
func (o *OpenCalls) Functions(yield func(id uint32) bool) {
	for _, p := range o.parts {
		for _, c := range p.calls {
			if !yield(c.id) {
				return
			}
		}
	}
}

// pass takes the thread's next events. From the last event backwards those are open that are entries above all that come later; few
// events are above all later ones, so this costs much less than pairing.
func (o *OpenCalls) pass(events []reel.Event) {
	if len(events) == 0 {
		return
	}
	base := events[len(events)-1].SP
	highest, lowest := int32(math.MinInt32), int32(0)
	o.late = o.late[:0]
	for i := len(events) - 1; i >= 0; i-- {
		e := &events[i]
		d := int32(e.SP - base)
		if d > highest {
			highest = d
			if e.Word&1 == 0 {
				o.late = append(o.late, openCall{e.SP, e.Word >> 1})
			}
		} else if d < lowest {
			lowest = d
		}
	}
	if int64(highest)-int64(lowest) > sameStack { // there may be several stacks
		for i := range events {
			o.step(&events[i])
		}
		return
	}
	o.end(base+uint32(highest), 0)
	for _, c := range slices.Backward(o.late) {
		o.push(c)
	}
}

// end takes the calls out of the list that an event ends which is at sp, calls at sp being margin below it: those of its part, and of the
// next one below as far as sameStack reaches.
func (o *OpenCalls) end(sp uint32, margin int32) {
	if o.count == 0 {
		return
	}
	part := sp >> partBits
	p, below := o.at(part)
	if p != nil {
		o.cut(p, sp, margin)
		if len(p.calls) == 0 {
			o.drop(part)
		}
	}
	if p = below; p == nil {
		return
	}
	n := 0 // the highest
	for n < len(p.calls) && sp-p.calls[n].sp <= sameStack {
		n++
	}
	p.calls = p.calls[n:]
	o.add(-n)
	o.drop(under(part))
}

// step takes one event. It says whether an exit is that of a call in the list.
func (o *OpenCalls) step(e *reel.Event) (matched bool) {
	if !e.IsExit() {
		o.end(e.SP, 0)
		o.push(openCall{e.SP, e.ID()})
		return true
	}
	o.end(e.SP, 1)
	p, _ := o.at(e.SP >> partBits)
	if p == nil {
		return false
	}
	n := len(p.calls)
	if n == 0 || p.calls[n-1] != (openCall{e.SP, e.ID()}) {
		return false
	}
	p.calls = p.calls[:n-1]
	if o.add(-1); n == 1 {
		o.drop(e.SP >> partBits)
	}
	return true
}
