package ring

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/callreel/callreel/reel"
)

// payloadOf are n payload events whose data begins with v.
func payloadOf(v uint64, n int) []reel.Event {
	var list []reel.Event
	for i := range n {
		list = append(list, reel.Event{Time: v + uint64(i), SP: uint32(i), Word: PayloadWord | uint32(i)<<PayloadIndexShift | uint32(n)<<PayloadCountShift})
	}
	return list
}

// valuesSink keeps which payload came with which event.
type valuesSink struct {
	collector
	with map[reel.Event]uint64 // the data's first number, by the event
}

func (s *valuesSink) AppendWith(events []reel.Event, payloads []Payload) error {
	for _, p := range payloads {
		v := uint64(0)
		for i := range 8 {
			v |= uint64(p.Data[i]) << (8 * i)
		}
		s.with[events[p.Event]] = v
	}
	return s.Append(events)
}

func TestPayloadsGoWithTheirEvents(t *testing.T) {
	for _, least := range []uint64{0, 50} {
		m := newMemory(t, MinChunks)
		sink := &valuesSink{with: map[reel.Event]uint64{}}
		d := NewDrainer(m, func(int, int, string) (Sink, error) { return sink, nil })
		d.Min = least
		d.TakesBack = d.Min != 0
		p := &producer{m: m, tid: 7}
		p.register("t")
		want := map[reel.Event]uint64{}
		write := func(e reel.Event, payload []reel.Event) {
			for _, one := range append([]reel.Event{e}, payload...) {
				if !p.event(one) {
					t.Fatal("no room")
				}
			}
			if len(payload) > 0 {
				want[e] = payload[0].Time
			}
		}
		at, all := uint64(100), 0
		for i := range 2000 {
			took := uint64(10 + i%3*40)
			entry, exit := reel.Entry(at, 800, 1), reel.Exit(at+took, 800, 1)
			write(entry, payloadOf(uint64(i)*1000, i%5))
			write(exit, payloadOf(uint64(i)*1000+500, i%2*3))
			all += 2
			if took < least {
				delete(want, entry)
				delete(want, exit)
				all -= 2
			}
			if i%9 == 0 {
				write(reel.Event{Word: PayloadWord}, nil) // fills
			}
			at += took + 1
			if i%50 == 49 {
				mustRound(t, d)
			}
		}
		if err := d.Finish(); err != nil {
			t.Fatal(err)
		}
		if len(sink.events) != all || !reflect.DeepEqual(sink.with, want) {
			t.Errorf("least %d: %d events, want %d; %d with payload, want %d", least, len(sink.events), all, len(sink.with), len(want))
		}
		for _, e := range sink.events {
			if isPayload(e.Word) {
				t.Fatalf("least %d: a payload event is handed on", least)
			}
		}
	}
}

// The target may write what it likes.
func TestPayloadsOfAHostileTarget(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	var s Payloads
	for range 3000 {
		run := make([]reel.Event, rnd.IntN(40))
		kept := 0
		for i := range run {
			run[i] = reel.Event{Time: rnd.Uint64(), Word: 1 + rnd.Uint32()>>1}
			if rnd.IntN(3) > 0 {
				run[i].Word = PayloadWord | rnd.Uint32N(4)<<PayloadIndexShift | rnd.Uint32N(4)<<PayloadCountShift | rnd.Uint32N(2)<<20
			}
			kept += 1 - bit(isPayload(run[i].Word))
		}
		events, payloads := s.Split(run)
		if len(events) != kept {
			t.Fatalf("%d events of %d", len(events), kept)
		}
		last := -1
		for _, p := range payloads {
			if p.Event <= last || p.Event >= len(events) || len(p.Data) == 0 || len(p.Data)%PayloadBytes != 0 {
				t.Fatalf("%+v of %d events, behind %d", p, len(events), last)
			}
			last = p.Event
		}
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
