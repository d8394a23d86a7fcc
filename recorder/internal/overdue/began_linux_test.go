package overdue

import (
	"slices"
	"testing"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

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
		got, _ := s.Begun(look, 100)
		all = slices.Clone(got)
		got, _ = s.End()
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
	events, payloads := s.Begun(Look{Tick: 125, Calls: []Call{{1000, 1}, {900, 2}}}, 100)
	all := slices.Clone(events)
	if len(payloads) != 2 || events[payloads[0].Event] != reel.Exit(120, 700, 7) || events[payloads[1].Event] != reel.Entry(130, 700, 7) || string(payloads[1].Data) != "two" {
		t.Errorf("%v carry %v", events, payloads)
	}
	s.Heard(Look{Tick: 1000, Calls: []Call{{1000, 1}, {900, 2}, {800, 3}}})
	events, _ = s.Next([]reel.Event{reel.Exit(2000, 900, 2)}, nil, 2000, 2000)
	all = append(all, events...)
	want := []span{{1, 100, 2000, true}, {2, 100, 2000, false}, {3, 140, 2000, false}, {7, 110, 120, false}, {7, 130, 140, false}}
	if got := spans(all); !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}
