package overdue

import (
	"errors"
	"slices"
	"testing"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// begun is all that Begun puts out.
func begun(t *testing.T, s *Silence, l Look, since uint64) (all []reel.Event, carried []ring.Payload) {
	t.Helper()
	if err := s.Begun(l, since, func(events []reel.Event, payloads []ring.Payload) error {
		for _, p := range payloads {
			carried = append(carried, ring.Payload{Event: len(all) + p.Event, Data: slices.Clone(p.Data)})
		}
		all = append(all, events...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all, carried
}

// main (1), loop (2) and handle (3) were open when recording began at tick 100. The thread has gone on before it was looked at: handle has
// returned, and been called anew (SP 900), and what isn't recorded (4) is called by it.
func TestWhatWasOpenWhenRecordingBeganComesFirst(t *testing.T) {
	began := func(events []reel.Event, look Look) (all []reel.Event) {
		var s Silence
		s.Await()
		for _, e := range events {
			if got, _ := s.Next([]reel.Event{e}, nil, e.Time, e.Time); len(got) > 0 {
				t.Fatalf("%v were not held back", got)
			}
		}
		if n, waits := s.Awaits(); n != len(events) || !waits {
			t.Fatalf("%d events are held back", n)
		}
		all, _ = begun(t, &s, look, 100)
		got, _ := s.End()
		return append(all, got...)
	}
	stack := Look{Tick: 250, Calls: []Call{{1000, 1}, {950, 2}, {900, 3}, {800, 4}}}
	for _, c := range []struct {
		name   string
		events []reel.Event
		look   Look
		want   []span
	}{
		{"was called anew", []reel.Event{reel.Exit(200, 900, 3), reel.Entry(210, 900, 3), reel.Exit(300, 900, 3)}, stack,
			[]span{{1, 100, 300, true}, {2, 100, 300, true}, {3, 210, 300, false}}},
		{"all goes on", []reel.Event{reel.Exit(300, 900, 3), reel.Exit(310, 950, 2), reel.Exit(320, 1000, 1)}, stack,
			[]span{{1, 100, 320, false}, {2, 100, 310, false}, {3, 100, 300, false}, {4, 100, 100, false}}},
		{"one of it has returned unseen", []reel.Event{reel.Entry(300, 920, 5), reel.Exit(310, 920, 5), reel.Exit(330, 950, 2)}, stack,
			[]span{{1, 100, 330, true}, {2, 100, 330, false}, {3, 100, 100, false}, {4, 100, 100, false}, {5, 300, 310, false}}},
		{"nothing was seen", []reel.Event{reel.Exit(200, 900, 3), reel.Entry(210, 900, 3), reel.Exit(300, 900, 3)}, Look{},
			[]span{{3, 210, 300, false}}},
	} {
		if got := spans(began(c.events, c.look)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v\nwant %v", c.name, got, c.want)
		}
	}
}

// What is held back keeps what it carries, and looks at all of the stack later don't see anew what was open.
func TestWhatIsHeldBackKeepsWhatItCarries(t *testing.T) {
	var s Silence
	s.Await()
	s.Next([]reel.Event{reel.Entry(110, 700, 7), reel.Exit(120, 700, 7)}, []ring.Payload{{Event: 1, Data: []byte("one")}}, 110, 120)
	s.Next([]reel.Event{reel.Entry(130, 700, 7), reel.Exit(140, 700, 7)}, []ring.Payload{{Event: 0, Data: []byte("two")}}, 130, 140)
	all, payloads := begun(t, &s, Look{Tick: 125, Calls: []Call{{1000, 1}, {900, 2}}}, 100)
	if len(payloads) != 2 || all[payloads[0].Event] != reel.Exit(120, 700, 7) || all[payloads[1].Event] != reel.Entry(130, 700, 7) || string(payloads[1].Data) != "two" {
		t.Errorf("%v carry %v", all, payloads)
	}
	s.Heard(Look{Tick: 1000, Calls: []Call{{1000, 1}, {900, 2}, {800, 3}}})
	events, _ := s.Next([]reel.Event{reel.Exit(2000, 900, 2)}, nil, 2000, 2000)
	all = append(all, events...)
	want := []span{{1, 100, 2000, true}, {2, 100, 2000, false}, {3, 140, 2000, false}, {7, 110, 120, false}, {7, 130, 140, false}}
	if got := spans(all); !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

// Millions are held back in pieces: nothing is lost or moved where two meet, whether the thread writes much at once or little.
func TestMuchIsHeldBackInPieces(t *testing.T) {
	const n = 2*heldAtOnce + 1000
	for _, atOnce := range []int{2, 999, heldAtOnce, n} {
		var s Silence
		s.Await()
		var events []reel.Event
		for i := range n / 2 {
			at := uint64(200 + 2*i)
			events = append(events, reel.Entry(at, 700, 7), reel.Exit(at+1, 700, 7))
		}
		for i := 0; i < n; i += atOnce {
			some := events[i:min(i+atOnce, n)]
			s.Next(some, []ring.Payload{{Event: len(some) - 1, Data: []byte{byte(i), byte(i >> 8)}}}, some[0].Time, some[len(some)-1].Time)
		}
		if held, waits := s.Awaits(); held != n || !waits {
			t.Fatalf("%d at once: %d are held back", atOnce, held)
		}
		all, payloads := begun(t, &s, Look{Tick: 200 + n, Calls: []Call{{1000, 1}}}, 100)
		more, _ := s.End()
		all = append(all, more...)
		if want := append([]reel.Event{reel.Entry(100, 1000, 1)}, events...); len(all) < len(want) || !slices.Equal(all[:len(want)], want) {
			t.Errorf("%d at once: %d events, want %d", atOnce, len(all), len(want))
		}
		if want := (n + atOnce - 1) / atOnce; len(payloads) != want {
			t.Errorf("%d at once: %d payloads, want %d", atOnce, len(payloads), want)
		}
		for k, p := range payloads {
			i := k * atOnce
			if at := 1 + min(i+atOnce, n) - 1; p.Event != at || p.Data[0] != byte(i) || p.Data[1] != byte(i>>8) {
				t.Fatalf("%d at once: payload %d is at %d with %v, want %d", atOnce, k, p.Event, p.Data, at)
			}
		}
	}
}

func TestWhatCannotBePutOutEndsIt(t *testing.T) {
	var s Silence
	s.Await()
	for i := range 3 * heldAtOnce {
		s.Next([]reel.Event{reel.Exit(uint64(200+i), 700, 7)}, nil, uint64(200+i), uint64(200+i))
	}
	full, puts := errors.New("no space"), 0
	if err := s.Begun(Look{}, 100, func([]reel.Event, []ring.Payload) error { puts++; return full }); !errors.Is(err, full) || puts != 1 {
		t.Errorf("%v after %d", err, puts)
	}
}
