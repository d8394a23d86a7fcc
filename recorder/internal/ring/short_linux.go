package ring

import (
	"math"
	"slices"

	"github.com/callreel/callreel/reel"
)

// maxWaiting bounds how many events of a thread wait for the end of a call that may come to be too short, at 24 bytes each: the
// first of them is kept when there are more.
const maxWaiting = 1 << 16

// maxFiltered is how many calls of a thread may be open for what leaves out some of its events; entries beyond are passed on.
const maxFiltered = 1 << 16

// What may wait, or be open, of a thread for what leaves out some of its events: capacity is given as it is needed, and taken back when the
// thread has ended. Threads are the target's to make, and to fill.
const (
	firstCapacity = 128
	totalCapacity = 1 << 21 // of all threads together, at some 64 bytes each
)

// maxPayloads is how many bytes of values may wait, of all threads together. Events beyond are recorded without theirs.
const maxPayloads = 64 << 20

// allowance is what all threads have beyond firstCapacity, and what waits of values.
type allowance struct{ taken, payloads int }

// grow doubles a capacity of up to most, if it may be.
func (a *allowance) grow(capacity, most int) int {
	if capacity >= most || a.taken+capacity > totalCapacity {
		return capacity
	}
	a.taken += capacity
	return 2 * capacity
}

// giveBack takes a capacity back.
func (a *allowance) giveBack(capacity int) { a.taken -= capacity - firstCapacity }

// longEnough passes on to a sink the events of those calls of one thread that take at least min ticks, or are open at the end. Stubs
// take back most of the others; what is left are those that had no room to look back to, or were unwound by longjmp or an exception.
//
// A call is kept as soon as an event comes that is so much later than its entry. So what waits in line is no older than that, and
// entries that were made before a kept call and aren't over are kept, too: events go out in the order in which they came in.
type longEnough struct {
	sink      Sink
	min       *uint64
	totals    *Totals
	allowance *allowance
	capacity  int // how many may be in line, and how many calls open
	opened    int // calls

	pairer  reel.Pairer
	open    [][]uint64 // by the pairer's stack and depth: the numbers of the open calls' entries
	line    []waiting
	gone    int    // how many of line's are not there any more
	base    uint64 // the number of line's first
	decided uint64 // all entries before that number are
	matched bool   // the exit at hand is that of a call
	short   bool   // which is too short
	now     uint64
	out     []reel.Event

	payload  []byte            // of the event at hand
	waits    map[uint64][]byte // those of events in line, by their numbers
	payloads []Payload         // of out
}

// waiting is an event in line.
type waiting struct {
	reel.Event
	is state
}

type state uint8

const (
	undecided state = iota
	kept
	tooShort
)

func newLongEnough(sink Sink, min *uint64, totals *Totals, all *allowance) *longEnough {
	l := &longEnough{sink: sink, min: min, totals: totals, allowance: all, capacity: firstCapacity}
	l.pairer.MaxOpen = firstCapacity
	l.pairer.OnEntry, l.pairer.OnCall = l.entered, l.ended
	return l
}

// Append takes the thread's next events.
func (l *longEnough) Append(events []reel.Event) error { return l.AppendWith(events, nil) }

// AppendWith is Append with the payloads of some of the events.
func (l *longEnough) AppendWith(events []reel.Event, payloads []Payload) error {
	for i := range events {
		l.payload = nil
		if len(payloads) > 0 && payloads[0].Event == i {
			l.payload, payloads = payloads[0].Data, payloads[1:]
		}
		e := events[i]
		e.Time = max(e.Time, l.now) // as readers count it, so that they find the same durations
		l.now = e.Time
		l.decide()
		if max(l.opened, len(l.line)-l.gone) >= l.capacity {
			l.capacity = l.allowance.grow(l.capacity, maxWaiting)
			l.pairer.MaxOpen = l.capacity
		}
		l.matched, l.short = false, false
		tooDeep := l.pairer.TooDeep
		one := [1]reel.Event{e}
		l.pairer.Push(one[:])
		switch {
		case e.IsExit() && !l.short: // or not that of a call, which readers count
			l.keepPayload()
			l.line = append(l.line, waiting{e, kept})
		case l.pairer.TooDeep != tooDeep:
			l.keepPayload()
			l.line = append(l.line, waiting{e, kept})
		}
		l.dropLast()
		if len(l.line)-l.gone > l.capacity {
			l.line[l.gone].is = kept
		}
		l.advance()
	}
	return l.pass()
}

// Dropped passes on what was dropped.
func (l *longEnough) Dropped(entries, exits, tick uint64) error {
	return l.sink.Dropped(entries, exits, tick)
}

// entered puts an entry in line.
func (l *longEnough) entered(c *reel.Call) {
	for len(l.open) <= c.Stack {
		l.open = append(l.open, nil)
	}
	l.opened++
	l.dropLast() // what it has ended
	l.open[c.Stack] = append(l.open[c.Stack][:c.Depth], l.base+uint64(len(l.line)))
	l.keepPayload()
	l.line = append(l.line, waiting{Event: reel.Event{Time: c.Start, SP: c.SP, Word: c.Func << 1}})
}

// ended notes that a call is over, now. The entry of one that was kept isn't in line any more, or is decided.
func (l *longEnough) ended(c *reel.Call) {
	l.opened--
	n := l.open[c.Stack][c.Depth]
	short := false
	if n >= l.base+uint64(l.gone) && l.line[n-l.base].is == undecided {
		l.line[n-l.base].is = tooShort
		short = true
	}
	if c.Flags&reel.Implicit == 0 {
		l.short = short
	}
}

// decide keeps the calls that are long enough by now.
func (l *longEnough) decide() {
	l.decided = max(l.decided, l.base+uint64(l.gone))
	for ; l.decided < l.base+uint64(len(l.line)); l.decided++ {
		w := &l.line[l.decided-l.base]
		if w.is == undecided {
			if l.now-w.Time < *l.min {
				return
			}
			w.is = kept
		}
	}
}

// dropLast takes calls that were too short off the line's end.
func (l *longEnough) dropLast() {
	n := len(l.line)
	for n > l.gone && l.line[n-1].is == tooShort {
		n--
		l.forgetPayload(l.base + uint64(n))
	}
	l.line = l.line[:n]
	l.decided = min(l.decided, l.base+uint64(n))
}

// advance lets what is decided go, in order.
func (l *longEnough) advance() {
	for l.gone < len(l.line) && l.line[l.gone].is != undecided {
		number := l.base + uint64(l.gone)
		if w := &l.line[l.gone]; w.is == kept {
			l.out = append(l.out, w.Event)
			if data := l.waits[number]; data != nil {
				l.payloads = append(l.payloads, Payload{len(l.out) - 1, data})
			}
		}
		l.forgetPayload(number)
		l.gone++
	}
	if l.gone == len(l.line) || l.gone > l.capacity {
		l.base += uint64(l.gone)
		l.line = append(l.line[:0], l.line[l.gone:]...)
		l.gone = 0
	}
}

// pass hands on what has gone.
func (l *longEnough) pass() error {
	if len(l.out) == 0 {
		return nil
	}
	l.totals.count(l.out)
	err := appendTo(l.sink, l.out, l.payloads)
	l.out, l.payloads = l.out[:0], l.payloads[:0]
	return err
}

// keepPayload keeps the payload of the event that is put in line next.
func (l *longEnough) keepPayload() {
	if l.payload == nil || l.allowance.payloads+len(l.payload) > maxPayloads {
		l.payload = nil
		return
	}
	l.allowance.payloads += len(l.payload)
	if l.waits == nil {
		l.waits = map[uint64][]byte{}
	}
	l.waits[l.base+uint64(len(l.line))] = slices.Clone(l.payload)
	l.payload = nil
}

func (l *longEnough) forgetPayload(number uint64) {
	if data, waits := l.waits[number]; waits {
		l.allowance.payloads -= len(data)
		delete(l.waits, number)
	}
}

// end passes on the calls that are open when the thread has ended, or the recording.
func (l *longEnough) end() error {
	l.allowance.giveBack(l.capacity)
	l.capacity = firstCapacity
	l.now = math.MaxUint64
	for i := range l.line[l.gone:] {
		if w := &l.line[l.gone+i]; w.is == undecided {
			w.is = kept
		}
	}
	l.advance()
	return l.pass()
}

// Filter passes the events of one thread on to a sink, but for those of calls that are shorter than so many ticks.
type Filter struct {
	long *longEnough
	min  uint64
}

// NewFilter returns a Filter for a thread whose stubs take back calls shorter than min ticks.
func NewFilter(sink Sink, min uint64) *Filter {
	f := &Filter{min: min}
	f.long = newLongEnough(sink, &f.min, &Totals{}, new(allowance))
	return f
}

// AppendWith takes the thread's next events, with the payloads of some of them.
func (f *Filter) AppendWith(events []reel.Event, payloads []Payload) error {
	return f.long.AppendWith(events, payloads)
}

// End passes on the calls that are open.
func (f *Filter) End() error { return f.long.end() }
