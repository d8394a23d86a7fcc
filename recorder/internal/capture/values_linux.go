package capture

import (
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/reel"
)

// Describer is a reel, or what takes its place: it is told what is recorded of a function before the function's first values.
type Describer interface {
	AddArguments(function uint32, atReturn bool, args []reel.Argument) error
}

// Told is what one Describer has been told.
type Told map[described]bool

// described is a function, by the reel's ID, at its entry or at its return.
type described struct {
	id       uint32
	atReturn bool
}

// describe says what is recorded of a function; id is the reel's.
func (told Told) describe(to Describer, id uint32, p *plans) error {
	for _, atReturn := range []bool{false, true} {
		plan, key := p.of(atReturn), described{id, atReturn}
		if plan == nil || told[key] {
			continue
		}
		told[key] = true
		if err := to.AddArguments(id, atReturn, plan.Arguments); err != nil {
			return err
		}
	}
	return nil
}

// DescribeAll says what is recorded of all functions that were planned. Their IDs must be the reel's.
func (s *Set) DescribeAll(to Describer, told Told) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, p := range s.plans {
		if err := told.describe(to, id, p); err != nil {
			return err
		}
	}
	return nil
}

// Values are those that events carry.
type Values struct {
	Sets  []reel.ValueSet // Number is the event's index in events
	plans []*plans        // of their functions
}

// Decode reads the values of events, whose IDs are the target's. What the target has written that was not asked for is left out.
func (s *Set) Decode(events []reel.Event, payloads []ring.Payload) Values {
	if len(payloads) == 0 {
		return Values{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var decoded Values
	var values []stub.Value
	for _, p := range payloads {
		e := &events[p.Event]
		all := s.plans[e.ID()]
		if all == nil || all.of(e.IsExit()) == nil {
			continue
		}
		values = all.of(e.IsExit()).Capture.Decode(p.Data, values[:0])
		set := reel.ValueSet{Number: uint64(p.Event), Values: make([]reel.Value, len(values))}
		for i, v := range values {
			set.Values[i] = reel.Value{State: reel.ValueState(v.State), Bits: v.Bits, Bytes: v.Bytes, Cut: v.Cut}
		}
		decoded.Sets, decoded.plans = append(decoded.Sets, set), append(decoded.plans, all)
	}
	return decoded
}

// Describe says what is recorded of the functions of values, if it hasn't been told yet. events are those that were decoded, their IDs the
// reel's by now.
func (v *Values) Describe(to Describer, told Told, events []reel.Event) error {
	for i := range v.Sets {
		if err := told.describe(to, events[v.Sets[i].Number].ID(), v.plans[i]); err != nil {
			return err
		}
	}
	return nil
}
