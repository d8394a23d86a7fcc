package capture

import (
	"maps"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/reel"
)

// Describer is a reel, or what takes its place: it is told what is recorded of a function before the function's first values.
type Describer interface {
	AddArguments(function uint32, atReturn bool, args []reel.Argument) error
}

// Decoder reads the values that events carry, for one reel. It is used by one goroutine at a time.
type Decoder struct {
	set  *Set
	to   Describer
	told map[described]bool
}

// described is a function, by the reel's ID, at its entry or at its return.
type described struct {
	id       uint32
	atReturn bool
}

// For returns what reads values for a reel, of which to is told what is recorded of functions. A reel that takes no values has nil.
func (s *Set) For(to Describer) *Decoder { return &Decoder{set: s, to: to, told: map[described]bool{}} }

// describe says what is recorded of a function; id is the reel's.
func (d *Decoder) describe(id uint32, p *plans) error {
	for _, atReturn := range []bool{false, true} {
		plan, key := p.of(atReturn), described{id, atReturn}
		if plan == nil || d.told[key] {
			continue
		}
		d.told[key] = true
		if err := d.to.AddArguments(id, atReturn, plan.Arguments); err != nil {
			return err
		}
	}
	return nil
}

// DescribeAll says what is recorded of all functions that were planned. Their IDs must be the reel's.
func (d *Decoder) DescribeAll() error {
	if d.to == nil {
		return nil
	}
	for id, p := range d.set.planned() {
		if err := d.describe(id, p); err != nil {
			return err
		}
	}
	return nil
}

// planned returns the plans of all functions that have any so far. Plans don't change.
func (s *Set) planned() map[uint32]*plans {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.plans)
}

// Decode reads the values of events, whose IDs are the target's. What the target has written that was not asked for is left out. describe says
// what is recorded of the functions of these values, if that hasn't been said yet; it is called with the same events, their IDs the reel's
// by then.
func (d *Decoder) Decode(events []reel.Event, payloads []ring.Payload) (sets []reel.ValueSet, describe func(events []reel.Event) error) {
	if len(payloads) == 0 || d.to == nil {
		return nil, nil
	}
	set := d.set
	set.mu.Lock()
	defer set.mu.Unlock()
	var of []*plans
	var values []stub.Value
	for _, p := range payloads {
		e := &events[p.Event]
		all := set.plans[e.ID()]
		if all == nil {
			continue
		}
		plan := all.of(e.IsExit())
		if plan == nil {
			continue
		}
		capture := plan.Capture
		values = capture.Decode(p.Data, values[:0])
		one := reel.ValueSet{Number: uint64(p.Event), Values: make([]reel.Value, len(values))}
		for i, v := range values {
			one.Values[i] = reel.Value{State: reel.ValueState(v.State), Bits: v.Bits, Bytes: v.Bytes, Cut: v.Cut}
		}
		sets, of = append(sets, one), append(of, all)
	}
	return sets, func(events []reel.Event) error {
		for i := range sets {
			if err := d.describe(events[sets[i].Number].ID(), of[i]); err != nil {
				return err
			}
		}
		return nil
	}
}
