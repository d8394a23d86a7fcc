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
		s.Heard(Look{Tick: tick, Calls: []Call{{950, 2}, {800, 3}, {600, 5}}})
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
	s.Heard(Look{Tick: 90, Calls: []Call{{800, 9}}})
	s.Heard(Look{Tick: 1000, Calls: []Call{{900, 2}, {800, 3}}})
	s.Heard(Look{Tick: 2000, Calls: []Call{{900, 2}, {800, 4}}})
	s.Heard(Look{Tick: 9000, Calls: []Call{{800, 9}}})
	rest, _ := s.Next([]reel.Event{reel.Exit(3000, 1000, 1)}, nil, 3000, 3000)
	all = append(all, rest...)
	want := []span{{1, 100, 3000, false}, {2, 120, 3000, false}, {3, 120, 1500, false}, {4, 1500, 3000, false}, {6, 110, 120, false}}
	if got := spans(all); !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

// Where silence is usual, calls that two looks have seen are the same only if the thread has waited all the time between, or they are near enough to
// each other; and none lasts for longer than it is known to.
func TestWhereSilenceIsUsualCallsEndSoon(t *testing.T) {
	usual := map[uint32]uint64{2: 500, 3: 1}
	s := Silence{Usual: func(id uint32) uint64 { return usual[id] }, Least: 1000}
	all, _ := s.Next([]reel.Event{reel.Entry(100, 990, 6), reel.Exit(120, 990, 6)}, nil, 100, 120)
	all = slices.Clone(all)
	flush := func() {
		events, _ := s.Flush()
		all = append(all, events...)
	}
	// Of function 1 it isn't known how long it takes.
	s.Heard(Look{Tick: 5000, Calls: []Call{{900, 1}, {800, 2}, {700, 3}}, Wait: 7, Loose: true})
	s.Waits(6, 99_000) // of another wait
	s.Waits(7, 9000)
	flush()
	s.Heard(Look{Tick: 12_000, Calls: []Call{{900, 1}, {800, 2}, {700, 3}}, Wait: 7, Loose: true})
	flush()
	s.Heard(Look{Tick: 20_000, Calls: []Call{{900, 1}, {800, 2}, {700, 3}}, Loose: true}) // 8000 later: 3500 is half of the wait
	s.Heard(Look{Tick: 21_000, Calls: []Call{{900, 1}, {800, 2}, {700, 3}}, Loose: true})
	s.Heard(Look{Tick: 22_500, Calls: []Call{{900, 1}, {800, 2}, {700, 3}}, Loose: true})
	last, _ := s.Next([]reel.Event{reel.Entry(50_000, 990, 6), reel.Exit(50_010, 990, 6)}, nil, 50_000, 50_010)
	all = append(all, last...)
	want := []span{{1, 120, 50_000, false}, {2, 3000, 15_500, false}, {2, 18_000, 24_500, false},
		{3, 3000, 15_500, false}, {3, 19_000, 21_750, false}, {3, 21_750, 23_500, false}, {6, 100, 120, false}, {6, 50_000, 50_010, false}}
	if got := spans(all); !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

// A function may be recorded again by the time what was seen of it is put in: it was seen as it was off, and is taken for what is usual still. If
// its exit comes next it has gone on until then, and what it lies within goes on.
func TestCallsOfFunctionsThatAreRecordedAgainEndSoon(t *testing.T) {
	for name, c := range map[string]struct {
		next []reel.Event
		want []span
	}{
		"an entry of its own": {[]reel.Event{reel.Entry(90_000, 700, 3), reel.Exit(90_100, 700, 3)},
			[]span{{2, 39_000, 41_000, false}, {2, 79_000, 81_000, false}, {3, 39_000, 41_000, false}, {3, 79_000, 81_000, false}, {3, 90_000, 90_100, false}}},
		"its exit": {[]reel.Event{reel.Exit(90_000, 700, 3), reel.Entry(90_100, 600, 4), reel.Exit(90_200, 600, 4)},
			[]span{{2, 39_000, 41_000, false}, {2, 79_000, 90_200, true}, {3, 39_000, 41_000, false}, {3, 79_000, 90_000, false}, {4, 90_100, 90_200, false}}},
		"that of what it lies within": {[]reel.Event{reel.Exit(90_000, 800, 2), reel.Entry(90_100, 900, 4), reel.Exit(90_200, 900, 4)},
			[]span{{2, 39_000, 41_000, false}, {2, 79_000, 90_000, false}, {3, 39_000, 41_000, false}, {3, 79_000, 81_000, false}, {4, 90_100, 90_200, false}}},
	} {
		s := Silence{Usual: func(uint32) uint64 { return 10 }, Least: 1000, Recorded: func(id uint32) bool { return id == 3 }}
		var all []reel.Event
		take := func(events []reel.Event, _ []ring.Payload) { all = append(all, events...) }
		take(s.Next([]reel.Event{reel.Entry(100, 990, 6), reel.Exit(120, 990, 6)}, nil, 100, 120))
		s.Heard(Look{Tick: 40_000, Calls: []Call{{800, 2}, {700, 3}}, Loose: true})
		s.Heard(Look{Tick: 80_000, Calls: []Call{{800, 2}, {700, 3}}, Loose: true})
		take(s.Next(c.next, nil, c.next[0].Time, c.next[len(c.next)-1].Time))
		take(s.End())
		want := append(slices.Clone(c.want), span{6, 100, 120, false})
		if got := spans(all); !slices.Equal(got, want) {
			t.Errorf("%s: %v\nwant %v", name, got, want)
		}
	}
}

// Of calls whose ends are not written any more, as their functions' exits were switched off, it is known that they were open then: they go on as
// long as looks see them.
func TestCallsWhoseEndsAreLostLastAsLongAsTheyAreSeen(t *testing.T) {
	for name, c := range map[string]struct {
		held bool // the calls are held back still
		look Look // at hand as it is known
		next Look
		want []span
	}{
		"no look":            {false, Look{}, Look{}, []span{{2, 200, 6000, false}, {3, 300, 6000, false}}},
		"held":               {true, Look{}, Look{}, []span{{2, 200, 6000, false}, {3, 300, 6000, false}}},
		"seen within":        {false, Look{Tick: 5800, Within: Call{700, 3}, Calls: []Call{{600, 5}}}, Look{}, []span{{2, 200, 6800, false}, {3, 300, 6800, false}, {5, 5400, 6800, false}}},
		"seen on a stack":    {true, Look{Tick: 5800, Calls: []Call{{800, 2}, {700, 3}, {600, 5}}}, Look{}, []span{{2, 200, 6800, false}, {3, 300, 6800, false}, {5, 5400, 6800, false}}},
		"one is over":        {true, Look{Tick: 5800, Calls: []Call{{800, 2}, {700, 6}}}, Look{}, []span{{2, 200, 6800, false}, {3, 300, 5400, false}, {6, 5400, 6800, false}}},
		"all are over":       {true, Look{Tick: 5800}, Look{}, []span{{2, 200, 5400, false}, {3, 300, 5400, false}}},
		"seen before":        {true, Look{Tick: 4000, Calls: []Call{{800, 2}, {700, 3}, {600, 5}}}, Look{}, []span{{2, 200, 6000, false}, {3, 300, 6000, false}}},
		"seen again":         {true, Look{}, Look{Tick: 6000, Calls: []Call{{800, 2}, {700, 3}}, Loose: true}, []span{{2, 200, 7000, false}, {3, 300, 7000, false}}},
		"others, much later": {true, Look{}, Look{Tick: 20_000, Calls: []Call{{800, 2}, {700, 3}}, Loose: true}, []span{{2, 200, 6000, false}, {2, 19_000, 21_000, false}, {3, 300, 6000, false}, {3, 19_000, 21_000, false}}},
	} {
		s := Silence{Usual: func(uint32) uint64 { return 10 }, Least: 1000, Recorded: func(id uint32) bool { return id == 4 }}
		var all []reel.Event
		take := func(events []reel.Event, _ []ring.Payload) { all = append(all, events...) }
		open := []reel.Event{reel.Entry(200, 800, 2), reel.Entry(300, 700, 3)}
		if !c.held {
			open = append(open, reel.Entry(310, 600, 4), reel.Exit(320, 600, 4))
		}
		take(s.Next(open, nil, 200, open[len(open)-1].Time))
		if c.look.Tick != 0 {
			s.Heard(c.look)
		}
		take(s.Lost([]Call{{800, 2}, {700, 3}}, 5000))
		if c.next.Tick != 0 {
			s.Heard(c.next)
		}
		take(s.Next([]reel.Event{reel.Entry(90_000, 990, 7), reel.Exit(90_100, 990, 7)}, nil, 90_000, 90_100))
		take(s.End())
		want := slices.Clone(c.want)
		if !c.held {
			want = slices.Insert(want, slices.IndexFunc(append(slices.Clone(want), span{id: 9}), func(x span) bool { return x.id > 4 }), span{4, 310, 320, false})
		}
		if got := spans(all); !slices.Equal(got, append(want, span{7, 90_000, 90_100, false})) {
			t.Errorf("%s: %v\nwant %v", name, got, want)
		}
	}
}

// What was seen around what is recorded doesn't go on for ever where calls of the function are short, even if all that is recorded is within such.
func TestWhatWasSeenAroundEndsInTime(t *testing.T) {
	s := Silence{Usual: func(id uint32) uint64 { return map[uint32]uint64{2: 10}[id] }, Least: 1000}
	var all []reel.Event
	next := func(events ...reel.Event) {
		got, _ := s.Next(events, nil, events[0].Time, events[len(events)-1].Time)
		all = append(all, got...)
	}
	next(reel.Entry(100, 700, 4))
	s.Heard(Look{Tick: 500, Calls: []Call{{900, 1}, {800, 2}, {600, 5}}, Wait: 1})
	next(reel.Exit(1000, 700, 4), reel.Entry(1100, 700, 4), reel.Exit(1200, 700, 4))
	next(reel.Entry(9000, 700, 4), reel.Exit(9100, 700, 4))
	got, _ := s.End()
	all = append(all, got...)
	want := []span{{1, 100, 9100, true}, {2, 100, 1200, false}, {4, 100, 1000, false}, {4, 1100, 1200, false}, {4, 9000, 9100, false}, {5, 100, 1000, false}}
	if got := spans(all); !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

// What was seen around a call ends when a look doesn't see it any more, and when one sees a call of the same function so much later that it is
// another: what is seen around the next call then stands in the reel.
func TestWhatWasSeenAroundIsLookedForAgain(t *testing.T) {
	for name, between := range map[string]Look{
		"another function":  {Tick: 3000, Calls: []Call{{900, 2}, {800, 6}}, Wait: 2},
		"much later":        {Tick: 9000, Calls: []Call{{900, 2}, {800, 3}}, Wait: 2, Loose: true},
		"nothing of them":   {Tick: 3000, Loose: true},
		"within another":    {Tick: 3000, Within: Call{950, 7}},
		"in the same wait":  {Tick: 9000, Calls: []Call{{900, 2}, {800, 3}}, Wait: 1, Loose: true},
		"within, and alive": {Tick: 3000, Within: Call{700, 4}},
	} {
		s := Silence{Usual: func(uint32) uint64 { return 10 }, Least: 1000}
		var all []reel.Event
		take := func(events []reel.Event, _ []ring.Payload) { all = append(all, events...) }
		take(s.Next([]reel.Event{reel.Entry(100, 1000, 1)}, nil, 100, 100))
		take(s.Next([]reel.Event{reel.Entry(200, 700, 4)}, nil, 200, 200))
		s.Heard(Look{Tick: 500, Calls: []Call{{900, 2}, {800, 3}}, Wait: 1, Loose: true})
		take(s.Next([]reel.Event{reel.Exit(1000, 700, 4)}, nil, 1000, 1000))
		s.Heard(between)
		take(s.Next([]reel.Event{reel.Entry(10_000, 700, 4)}, nil, 10_000, 10_000))
		s.Heard(Look{Tick: 10_300, Calls: []Call{{900, 2}, {850, 5}, {800, 3}}, Wait: 3, Loose: true})
		take(s.Next([]reel.Event{reel.Exit(11_000, 700, 4), reel.Exit(11_100, 1000, 1)}, nil, 11_000, 11_100))
		take(s.End())
		until := uint64(1000)
		if name == "another function" { // this one has been seen there once more
			until = 10_000
		}
		if got := spans(all); !slices.Contains(got, span{2, 200, until, false}) || !slices.Contains(got, span{2, 10_000, 11_000, false}) ||
			!slices.Contains(got, span{3, 10_000, 11_000, false}) || !slices.Contains(got, span{5, 10_000, 11_000, false}) {
			t.Errorf("%s: %v", name, got)
		}
		if s.Around() {
			t.Errorf("%s: something goes on in the end", name)
		}
	}
}

// Whatever comes: the thread's own events stay as they are, in their order, with what they carry, and time doesn't go back.
func FuzzSilence(f *testing.F) {
	f.Add([]byte("aAbBcC\x00\x01\x02dDeE\xff\xfe"))
	f.Add([]byte("\xff\xf4\xf4\xf5\x140\xee%")) // a look sees a call end that was inside one from before
	f.Add([]byte{1, 200, 2, 100, 0xF0, 9, 3, 50, 0x83, 50, 0x82, 100, 0x81, 200})
	f.Fuzz(func(t *testing.T, data []byte) {
		var s Silence
		if len(data) > 1 && data[1]&1 != 0 {
			s.Usual, s.Least, s.Recorded = func(id uint32) uint64 { return uint64(id % 4) }, 3, func(id uint32) bool { return id%3 == 0 }
		}
		if len(data) > 0 && data[0]&1 != 0 {
			s.Await()
		}
		var in, out []reel.Event
		var lost []Call
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
		begin := func(l Look) {
			_ = s.Begun(l, 0, func(events []reel.Event, payloads []ring.Payload) error {
				take(events, payloads)
				return nil
			})
		}
		var batch []reel.Event
		var payloads []ring.Payload
		for len(data) >= 2 {
			kind, x := data[0], data[1]
			data = data[2:]
			tick += uint64(x%7) + 1
			switch {
			case kind >= 0xF0: // a look, of functions from 1000 on
				l := Look{Tick: tick, Wait: uint64(x%8) / 3, Loose: x >= 128}
				for i := range uint32(x % 5) {
					l.Calls = append(l.Calls, Call{2000 - 100*i - uint32(kind), 1000 + i})
				}
				s.Heard(l)
			case kind >= 0xEC:
				if _, waits := s.Awaits(); waits {
					begin(Look{Tick: tick, Calls: []Call{{uint32(x) * 16, 1001}, {uint32(x) * 8, 1002}}})
				}
			case kind >= 0xE8:
				if len(batch) == 0 { // all that was written by the last look has come
					take(s.Flush())
				}
			case kind >= 0xE4:
				s.Waits(uint64(x%8)/3, tick)
			case kind >= 0xE0:
				if len(batch) > 0 {
					take(s.Next(batch, payloads, batch[0].Time, batch[len(batch)-1].Time))
				}
				batch, payloads = nil, nil
			case kind >= 0xDC: // of so many entries that come last
				n := 0
				for n < int(x%4) && n < len(in) && !in[len(in)-1-n].IsExit() && (n == 0 || int32(in[len(in)-1-n].SP-in[len(in)-n].SP) > 0) {
					n++
				}
				if _, waits := s.Awaits(); waits || n == 0 || len(batch) > 0 {
					continue
				}
				var calls []Call
				for _, e := range in[len(in)-n:] {
					calls = append(calls, Call{e.SP, e.ID()})
				}
				lost = append(lost, calls...)
				take(s.Lost(calls, tick-min(tick, uint64(x%16))))
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
		if _, waits := s.Awaits(); waits {
			begin(Look{})
		}
		take(s.End())
		last := uint64(0)
		var own []reel.Event
		for _, e := range out {
			if e.Time < last {
				t.Fatalf("tick %d behind %d", e.Time, last)
			}
			if last = e.Time; e.ID() >= 1000 || e.IsExit() && slices.Contains(lost, Call{e.SP, e.ID()}) && (len(own) == len(in) || in[len(own)] != e) {
				continue
			}
			own = append(own, e)
		}
		if !slices.Equal(own, in) {
			t.Fatalf("%v\nwant %v", own, in)
		}
		if !slices.EqualFunc(kept, carried, slices.Equal) {
			t.Fatalf("carried %x, want %x", kept, carried)
		}
	})
}
