package past

import (
	"slices"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// Open is the entry of a call that was open at some moment, with what it carries. Its function ID is the target's. In a Go program it is the
// event that says which goroutine ran then.
type Open struct {
	reel.Event
	Payload []byte
}

// settle gives events that are later than one behind them that one's time, as ring.InOrder, and returns the highest stack pointer of all and
// the entries that are above all that comes later, innermost first: so few events are that one look at each is all it takes.
func settle(events []reel.Event, open []int) (above uint32, _ []int) {
	open = open[:0]
	next := ^uint64(0)
	highest := int64(-1)
	for i := len(events) - 1; i >= 0; i-- {
		e := &events[i]
		if at := e.Time; at > next {
			e.Time = next
		} else if at != 0 {
			next = at
		}
		if sp := int64(e.SP); sp > highest {
			highest = sp
			if e.Word&1 == 0 {
				open = append(open, i)
			}
		}
	}
	return uint32(max(0, highest)), open
}

// highest returns the same of events that are in order, by their peaks, see ring.Run: most stretches have none above what comes later.
func highest(events []reel.Event, peaks []uint32, open []int) (above uint32, _ []int) {
	open = open[:0]
	most := int64(-1)
	for k, peak := range slices.Backward(peaks) {
		if int64(peak) <= most {
			continue
		}
		first := min(k*ring.PeakEvents, len(events))
		part := events[first:min(first+ring.PeakEvents, len(events))]
		for i := range slices.Backward(part) {
			if sp := int64(part[i].SP); sp > most {
				most = sp
				if part[i].Word&1 == 0 {
					open = append(open, first+i)
				}
			}
		}
	}
	return uint32(max(0, most)), open
}

// lastSwitch is the last event that says which goroutine goes on.
func lastSwitch(events []reel.Event, open []int) []int {
	open = open[:0]
	for i := len(events) - 1; i >= 0; i-- {
		if _, is := events[i].Goroutine(); is {
			return append(open, i)
		}
	}
	return open
}

// opened are the events at those places, which come last first, with their payloads.
func opened(run *ring.Run, at []int) (list []Open) {
	for _, i := range slices.Backward(at) {
		o := Open{Event: run.Events[i]}
		if id := o.ID(); uint64(id) < uint64(len(run.Targets)) {
			o.Word = run.Targets[id]<<1 | o.Word&1
		}
		k, found := slices.BinarySearchFunc(run.Payloads, i, func(p ring.Payload, i int) int { return p.Event - i })
		if found {
			o.Payload = slices.Clone(run.Payloads[k].Data)
		}
		list = append(list, o)
	}
	return list
}

// later is which calls are open after others: those of before that are above all of them, and what they have opened.
func later(before []Open, above uint32, opens []Open, goroutines bool) []Open {
	if goroutines {
		if len(opens) > 0 {
			return opens
		}
		return before
	}
	n := slices.IndexFunc(before, func(o Open) bool { return o.SP <= above })
	if n < 0 {
		n = len(before)
	}
	return append(before[:n:n], opens...)
}
