package overdue

import (
	"cmp"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

type span struct {
	id       uint32
	from, to uint64
	open     bool
}

// spans are the calls that events make, by their functions.
func spans(events []reel.Event) (list []span) {
	p := reel.Pairer{OnCall: func(c *reel.Call) { list = append(list, span{c.Func, c.Start, c.End, c.Flags != 0}) }}
	p.Push(events)
	p.Finish(0)
	slices.SortFunc(list, func(a, b span) int { return cmp.Compare(a.id, b.id) })
	return list
}

// A recorded function (1) calls others that aren't (2, 3), which call one that is, being called seldom (4), where it waits in another (5).
func TestWhatIsSeenStandsBetweenWhatIsRecorded(t *testing.T) {
	var s Silence
	var all []reel.Event
	next := func(events ...reel.Event) {
		got, _ := s.Next(events, nil, events[0].Time, events[len(events)-1].Time)
		all = append(all, got...)
	}
	next(reel.Entry(100, 1000, 1), reel.Entry(110, 900, 6), reel.Exit(120, 900, 6))
	next(reel.Entry(200, 700, 4))
	if s.Held() != 1 || s.Last != 200 {
		t.Fatalf("%d held, last %d", s.Held(), s.Last)
	}
	for _, tick := range []uint64{1000, 2000} {
		s.Heard(Look{tick, []Call{{950, 2}, {800, 3}, {600, 5}}})
	}
	next(reel.Exit(3000, 700, 4))
	next(reel.Entry(3100, 940, 7), reel.Exit(3110, 940, 7), reel.Exit(3200, 1000, 1))
	got, _ := s.End()
	all = append(all, got...)
	want := []span{{1, 100, 3200, false}, {2, 200, 3110, false}, {3, 200, 3000, false}, {4, 200, 3000, false}, {5, 200, 3000, false}, {6, 110, 120, false}, {7, 3100, 3110, false}}
	if got := spans(all); !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	if s.Seen != 3 {
		t.Errorf("%d calls were seen", s.Seen)
	}
}

// What several looks have seen lasts as long as they have; what isn't within the silence is left out.
func TestWhatIsSeenLastsFromLookToLook(t *testing.T) {
	var s Silence
	first, _ := s.Next([]reel.Event{reel.Entry(100, 1000, 1), reel.Entry(110, 900, 6), reel.Exit(120, 900, 6)}, nil, 100, 120)
	all := slices.Clone(first)
	s.Heard(Look{90, []Call{{800, 9}}})
	s.Heard(Look{1000, []Call{{900, 2}, {800, 3}}})
	s.Heard(Look{2000, []Call{{900, 2}, {800, 4}}})
	s.Heard(Look{9000, []Call{{800, 9}}})
	rest, _ := s.Next([]reel.Event{reel.Exit(3000, 1000, 1)}, nil, 3000, 3000)
	all = append(all, rest...)
	want := []span{{1, 100, 3000, false}, {2, 120, 3000, false}, {3, 120, 1500, false}, {4, 1500, 3000, false}, {6, 110, 120, false}}
	if got := spans(all); !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

// Whatever comes: the thread's own events stay as they are, in their order, with what they carry, and time doesn't go back.
func FuzzSilence(f *testing.F) {
	f.Add([]byte("aAbBcC\x00\x01\x02dDeE\xff\xfe"))
	f.Add([]byte{1, 200, 2, 100, 0xF0, 9, 3, 50, 0x83, 50, 0x82, 100, 0x81, 200})
	f.Fuzz(func(t *testing.T, data []byte) {
		var s Silence
		var in, out []reel.Event
		var carried, kept [][]byte
		tick := uint64(1)
		take := func(events []reel.Event, payloads []ring.Payload) {
			for _, p := range payloads {
				if p.Event < 0 || p.Event >= len(events) || events[p.Event].Word != binary.LittleEndian.Uint32(p.Data) {
					t.Fatalf("payload of event %d of %v", p.Event, events)
				}
				kept = append(kept, slices.Clone(p.Data))
			}
			out = append(out, events...)
		}
		var batch []reel.Event
		var payloads []ring.Payload
		for len(data) >= 2 {
			kind, x := data[0], data[1]
			data = data[2:]
			tick += uint64(x%7) + 1
			switch {
			case kind >= 0xF0: // a look, of functions from 1000 on
				l := Look{Tick: tick}
				for i := range uint32(x % 5) {
					l.Calls = append(l.Calls, Call{2000 - 100*i - uint32(kind), 1000 + i})
				}
				s.Heard(l)
			case kind >= 0xE0:
				if len(batch) > 0 {
					take(s.Next(batch, payloads, batch[0].Time, batch[len(batch)-1].Time))
				}
				batch, payloads = nil, nil
			default:
				e := reel.Event{Time: tick, SP: uint32(x) * 8, Word: uint32(kind)}
				if kind%3 == 0 {
					b := binary.LittleEndian.AppendUint32(nil, e.Word)
					payloads = append(payloads, ring.Payload{Event: len(batch), Data: b})
					carried = append(carried, b)
				}
				in, batch = append(in, e), append(batch, e)
			}
		}
		if len(batch) > 0 {
			take(s.Next(batch, payloads, batch[0].Time, batch[len(batch)-1].Time))
		}
		take(s.End())
		last := uint64(0)
		var own []reel.Event
		for _, e := range out {
			if e.Time < last {
				t.Fatalf("tick %d behind %d", e.Time, last)
			}
			if last = e.Time; e.ID() < 1000 {
				own = append(own, e)
			}
		}
		if !slices.Equal(own, in) {
			t.Fatalf("%v\nwant %v", own, in)
		}
		if !slices.EqualFunc(kept, carried, slices.Equal) {
			t.Fatalf("carried %x, want %x", kept, carried)
		}
	})
}
