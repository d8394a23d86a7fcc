package armed

import (
	"slices"
	"testing"

	"github.com/callreel/callreel/recorder/internal/overdue"
	"github.com/callreel/callreel/recorder/internal/past"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// request (1) is called at tick 1000, and calls what isn't recorded (2, 3), which calls lookup (4) once; then all waits in 3. Which chunk of the
// rings has what, and whether that is in the store, makes no difference.
func TestLooksStandInADumpWhereTheyWere(t *testing.T) {
	in, out := reel.Entry, reel.Exit
	before := []reel.Event{in(900, 0x900, 5), out(950, 0x900, 5)}
	first := []reel.Event{in(1000, 0x1000, 1), in(1010, 0xE00, 4), out(1020, 0xE00, 4)}
	then := []reel.Event{out(9000, 0x1000, 1)}
	behind := []reel.Event{in(9100, 0x1000, 1), out(9200, 0x1000, 1)}
	look := func(tick uint64) overdue.Look {
		return overdue.Look{Tick: tick, Calls: []overdue.Call{{SP: 0x1100, ID: 6}, {SP: 0xF00, ID: 2}, {SP: 0xD00, ID: 3}}}
	}
	want := []reel.Event{in(900, 0x900, 5), out(950, 0x900, 5), in(1000, 0x1000, 1), in(1010, 0xE00, 4), out(1020, 0xE00, 4), in(1020, 0xF00, 2), in(1020, 0xD00, 3),
		out(9000, 0xD00, 3), out(9000, 0xF00, 2), out(9000, 0x1000, 1), in(9100, 0x1000, 1), out(9200, 0x1000, 1)}
	run := func(seq uint32, parts ...[]reel.Event) ring.Run {
		events := slices.Clone(slices.Concat(parts...))
		return ring.Run{TID: 7, Seq: seq, From: events[0].Time, To: events[len(events)-1].Time + 1, Events: events}
	}
	for _, test := range []struct {
		name  string
		store [][]ring.Run // a chunk of the store for each
		rings []ring.Run
	}{
		{"all in one", nil, []ring.Run{run(0, before, first, then, behind)}},
		{"the look is between two", nil, []ring.Run{run(0, before), run(1, first), run(2, then), run(3, behind)}},
		{"all in the store", [][]ring.Run{{run(0, before, first), run(1, then, behind)}}, nil},
		{"some of it", [][]ring.Run{{run(0, before)}, {run(1, first)}}, []ring.Run{run(2, then), run(3, behind)}},
	} {
		for _, looks := range [][]overdue.Look{{look(5000)}, {look(3000), look(5000), look(8000)}} {
			h := threadRuns{thread: &thread{nstid: 7}, runs: test.rings, ids: []uint32{0, 1, 2, 3, 4, 5, 6}}
			store := past.New(past.Config{Memory: 64 << 20, Translate: func([]reel.Event) error { return nil }})
			for _, chunk := range test.store {
				for i := range chunk {
					r := chunk[i]
					r.Events = slices.Clone(r.Events)
					if err := store.Add(&r); err != nil {
						t.Fatal(err)
					}
				}
				held, err := store.Hold() // which ends a chunk
				if err != nil {
					t.Fatal(err)
				}
				h.base, h.chunks = held[0].Base, held[0].Chunks
			}
			win := window{from: 800, to: 10_000}
			cut, err := h.cut(win, ofThreads{})
			if err == nil {
				err = h.weave(&cut, win, slices.Clone(looks))
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []reel.Event
			for i := range cut.events {
				part := cut.events[i]
				if c := cut.chunk(i); c != nil {
					r, err := c.Run(h.ids, nil)
					if err != nil {
						t.Fatal(err)
					}
					part = r.Events
				}
				got = append(got, part...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, %d looks: %v\nwant %v", test.name, len(looks), got, want)
			}
			store.Close()
		}
	}
}

// What events carry stays theirs, and a look in a time of which nothing is known isn't put anywhere.
func TestLooksLeaveWhatEventsCarry(t *testing.T) {
	in, out := reel.Entry, reel.Exit
	h := threadRuns{thread: &thread{nstid: 7}}
	cut := cutEvents{events: [][]reel.Event{{in(1000, 0x1000, 1), in(1010, 0xE00, 4), out(9000, 0xE00, 4), out(9010, 0x1000, 1)}},
		payloads: [][]ring.Payload{nil, {{Event: 1, Data: []byte("entry")}, {Event: 2, Data: []byte("exit")}}}, missing: []window{{from: 100, to: 200}}}
	looks := []overdue.Look{{Tick: 150, Calls: []overdue.Call{{SP: 0x800, ID: 9}}}, {Tick: 5000, Calls: []overdue.Call{{SP: 0xF00, ID: 2}, {SP: 0xD00, ID: 3}}}}
	if err := h.weave(&cut, window{from: 0, to: 10_000}, looks); err != nil {
		t.Fatal(err)
	}
	want := []reel.Event{in(1000, 0x1000, 1), in(1010, 0xF00, 2), in(1010, 0xE00, 4), in(1010, 0xD00, 3), out(9000, 0xD00, 3), out(9000, 0xE00, 4), out(9000, 0xF00, 2), out(9010, 0x1000, 1)}
	if !slices.Equal(cut.events[0], want) {
		t.Errorf("%v\nwant %v", cut.events[0], want)
	}
	p := cut.payloads[1]
	if len(p) != 2 || p[0].Event != 2 || p[1].Event != 5 || string(p[0].Data) != "entry" || string(p[1].Data) != "exit" {
		t.Errorf("payloads %v", p)
	}
}
