package ring

import (
	"errors"
	"sync/atomic"

	"github.com/callreel/callreel/reel"
)

// SetOff makes the stubs of a thread write nothing, in recordings of some of the threads, or undoes that. It is for a thread that hasn't
// written yet: nothing need be drained then.
func (m *Memory) SetOff(tid int, off bool) {
	v := uint32(0)
	if off {
		v = registeredOff
	}
	atomic.StoreUint32(m.u32(SlotsOff+uint64(tid)*SlotSize+SlotRegistered), v)
}

// Off hands on what a thread has written, but for what may be taken back still, and lets its stubs write nothing from then on; what comes
// nonetheless is passed over. Its sink is used no more.
func (d *Drainer) Off(tid int) error {
	t := d.threads[tid]
	if t == nil || t.sink == nil {
		return nil
	}
	d.switchTo(t, registeredOff)
	_, err := d.drain(t, false)
	if t.long != nil {
		err = errors.Join(err, t.long.end())
	}
	t.leave()
	t.sink, t.long = nil, nil
	return err
}

// leave gives the capacity back that what leaves out some of the thread's events has taken.
func (t *thread) leave() {
	if e := t.entered; e != nil {
		e.allowance.giveBack(e.capacity)
		e.capacity, t.entered = firstCapacity, nil
	}
}

// On lets a thread write that was off, to another sink. Exits of calls whose entry it hasn't written are left out.
func (d *Drainer) On(tid int, sink Sink) error {
	t := d.threads[tid]
	if t == nil || t.sink != nil {
		return nil
	}
	_, err := d.drain(t, false)
	d.lead(t, sink, true)
	d.switchTo(t, 1)
	return err
}

// Late says that a thread for which SetOff was called has been let write again: exits of calls from before are left out when it does.
func (d *Drainer) Late(tid int) {
	if d.again == nil {
		d.again = map[int]bool{}
	}
	d.again[tid] = true
}

func (d *Drainer) switchTo(t *thread, registered uint32) {
	atomic.StoreUint32(d.m.u32(t.slot()+SlotRegistered), registered)
}

// lead lets a thread's events go to a sink, through what leaves out some of them.
func (d *Drainer) lead(t *thread, sink Sink, late bool) {
	t.sink, t.long, t.counted, t.entered = sink, nil, false, nil
	t.marks, _ = sink.(MarkSink)
	if d.Min != 0 || d.TakesBack {
		t.long = newLongEnough(sink, &d.Min, &d.totals, &d.allowance)
		t.sink, t.counted = t.long, true
	}
	if late {
		e := &entered{sink: t.sink, allowance: &d.allowance, capacity: firstCapacity}
		e.pairer.MaxOpen = firstCapacity
		e.pairer.OnEntry, e.pairer.OnCall = func(*reel.Call) { e.open++ }, func(*reel.Call) { e.open-- }
		t.entered = e
		if !t.counted {
			e.totals = &d.totals
		}
		t.sink, t.counted = e, true
	}
	if !t.met {
		t.met = true
		d.totals.Threads++
	}
}

// SetLeast changes Min. Calls that are open, and their callers, go by the new one if the old one hasn't decided on them.
func (d *Drainer) SetLeast(ticks uint64) {
	d.Min = ticks
	if ticks == 0 {
		return // what is there passes all on
	}
	for _, t := range d.threads {
		if t.sink == nil || t.long != nil {
			continue
		}
		if e := t.entered; e != nil {
			t.long = newLongEnough(e.sink, &d.Min, &d.totals, &d.allowance)
			e.sink, e.totals = t.long, nil
		} else {
			t.long = newLongEnough(t.sink, &d.Min, &d.totals, &d.allowance)
			t.sink = t.long
		}
		t.counted = true
	}
}

// entered passes on all events but exits of calls whose entry it hasn't seen.
type entered struct {
	sink      Sink
	totals    *Totals // nil if others count
	allowance *allowance
	capacity  int // how many calls may be open
	open      int
	pairer    reel.Pairer
	out       []reel.Event
	with      []Payload
}

// Append takes the thread's next events.
func (s *entered) Append(events []reel.Event) error { return s.AppendWith(events, nil) }

// AppendWith takes them with what some of them carry.
func (s *entered) AppendWith(events []reel.Event, payloads []Payload) error {
	s.out, s.with = s.out[:0], s.with[:0]
	for i, e := range events {
		if s.open >= s.capacity {
			s.capacity = s.allowance.grow(s.capacity, maxFiltered)
			s.pairer.MaxOpen = s.capacity
		}
		before := s.pairer.Unmatched
		s.pairer.Push([]reel.Event{e})
		if s.pairer.Unmatched != before {
			continue
		}
		for len(payloads) > 0 && payloads[0].Event < i {
			payloads = payloads[1:]
		}
		if len(payloads) > 0 && payloads[0].Event == i {
			s.with = append(s.with, Payload{len(s.out), payloads[0].Data})
		}
		s.out = append(s.out, e)
	}
	if len(s.out) == 0 {
		return nil
	}
	if s.totals != nil {
		s.totals.count(s.out)
	}
	if to, ok := s.sink.(PayloadSink); ok && len(s.with) > 0 {
		return to.AppendWith(s.out, s.with)
	}
	return s.sink.Append(s.out)
}

// Dropped passes on what was dropped.
func (s *entered) Dropped(entries, exits, tick uint64) error {
	return s.sink.Dropped(entries, exits, tick)
}

// count adds what a sink is given.
func (t *Totals) count(events []reel.Event) {
	t.Events += uint64(len(events))
	t.Entries += entriesIn(events)
}

func entriesIn(events []reel.Event) (n uint64) {
	for i := range events {
		if w := events[i].Word; !IsMark(w) {
			n += uint64(^w & 1)
		}
	}
	return n
}
