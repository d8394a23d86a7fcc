package recorder

import (
	"math"
	"slices"

	"github.com/callreel/callreel/reel"
)

// openCalls are the calls of one thread that its recorded events leave open, as far as that matters for switching functions off: a call
// may stay in the list after an exception has left it, until there is an event near above it.
//
// Stacks are told apart by their distance, as reel.Pairer does it.
type openCalls struct {
	list []openCall
	late []openCall // of the events at hand, from the last on
}

type openCall struct{ sp, id uint32 }

const (
	// sameStack is how far above a call an event may be that ends it.
	sameStack = 64 << 10
	// withinReach is how far below its caller a call may be.
	withinReach = 1 << 20
)

// pass takes the thread's next events. From the last event backwards those are open that are entries above all that come later; few
// events are above all later ones, so this costs much less than pairing.
func (o *openCalls) pass(events []reel.Event) {
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
		o.list = append(o.list, c)
	}
}

// end takes the calls out of the list that an event ends which is at sp, calls at sp being margin below it.
func (o *openCalls) end(sp uint32, margin int32) {
	for i := len(o.list) - 1; i >= 0; i-- {
		d := int32(sp - o.list[i].sp)
		if d < margin && d >= -withinReach { // its caller
			return
		}
		if d >= margin && d <= sameStack {
			o.list = slices.Delete(o.list, i, i+1)
		}
	}
}

// step takes one event. It says whether an exit is that of a call in the list.
func (o *openCalls) step(e *reel.Event) (matched bool) {
	if !e.IsExit() {
		o.end(e.SP, 0)
		o.list = append(o.list, openCall{e.SP, e.ID()})
		return true
	}
	o.end(e.SP, 1)
	for i := len(o.list) - 1; i >= 0; i-- {
		c := o.list[i]
		if c.sp == e.SP && c.id == e.ID() {
			o.list = slices.Delete(o.list, i, i+1)
			return true
		}
		if d := int32(e.SP - c.sp); d < 0 && d >= -withinReach {
			return false
		}
	}
	return false
}
