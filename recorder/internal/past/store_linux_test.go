package past

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// shift is what the tests' Translate adds to functions' IDs.
const shift = 1000

func translate(events []reel.Event) error {
	for i := range events {
		if e := &events[i]; e.Word>>30 == 0 {
			e.Word += shift << 1
		}
	}
	return nil
}

// targets undoes it.
func targets() []uint32 {
	ids := make([]uint32, 2*shift)
	for i := range ids {
		ids[i] = uint32(max(0, i-shift))
	}
	return ids
}

// named is a run whose events have names and are in order, as most come out of the rings; others are left as they are.
func named(run *ring.Run) {
	if len(run.Payloads)+len(run.Marks) > 0 || !slices.IsSortedFunc(run.Events, func(a, b reel.Event) int { return int(a.Time) - int(b.Time) }) {
		return
	}
	if translate(run.Events) != nil {
		return
	}
	for block := range slices.Chunk(run.Events, ring.PeakEvents) {
		peak := uint32(0)
		for _, e := range block {
			peak = max(peak, e.SP)
		}
		run.Peaks = append(run.Peaks, peak)
	}
	run.Targets = targets()
}

// caller makes the calls of a thread, and the chunks that the rings hold of them.
type caller struct {
	rng      *rand.Rand
	tid      int
	seq      uint32
	now      uint64
	open     []reel.Event
	all      []ring.Run // as they were, for comparison
	switches bool
	plain    bool // events carry nothing, and no markers are passed
}

func (c *caller) chunk(n int, to uint64) ring.Run {
	h := ring.Run{TID: c.tid, Seq: c.seq, From: c.now}
	c.seq++
	for range n {
		c.now += 1 + c.rng.Uint64N(50)
		switch {
		case c.switches && c.rng.IntN(20) == 0:
			h.Events = append(h.Events, reel.Switch(c.now, 1+c.rng.Uint64N(1<<40)))
			continue
		case len(c.open) > 0 && (c.rng.IntN(2) == 0 || len(c.open) > 30):
			depth := len(c.open) - 1
			if c.rng.IntN(50) == 0 { // longjmp
				depth = c.rng.IntN(len(c.open))
			}
			h.Events = append(h.Events, reel.Exit(c.now, c.open[depth].SP, c.open[depth].ID()))
			c.open = c.open[:depth]
		default:
			sp := uint32(1 << 30)
			if k := len(c.open); k > 0 {
				sp = c.open[k-1].SP - 16*(1+c.rng.Uint32N(8))
			}
			e := reel.Entry(c.now, sp, 1+c.rng.Uint32N(900))
			h.Events, c.open = append(h.Events, e), append(c.open, e)
		}
		if c.plain {
			continue
		}
		if c.rng.IntN(40) == 0 {
			data := make([]byte, ring.PayloadBytes*(1+c.rng.IntN(5)))
			for i := range data {
				data[i] = byte(c.rng.Uint32())
			}
			h.Payloads = append(h.Payloads, ring.Payload{Event: len(h.Events) - 1, Data: data})
		}
		if c.rng.IntN(60) == 0 {
			h.Marks = append(h.Marks, reel.Event{Time: c.now, SP: 5, Word: ring.MarkWord | c.rng.Uint32N(9)<<1})
			h.MarkPayloads = append(h.MarkPayloads, ring.Payload{Event: len(h.Marks) - 1, Data: make([]byte, ring.PayloadBytes)})
		}
	}
	c.now = max(c.now, to)
	h.To = c.now
	kept := h
	kept.Events = slices.Clone(h.Events)
	c.all = append(c.all, kept)
	return h
}

// openAfter are the calls that are open after events, by replaying them.
func openAfter(open []reel.Event, events []reel.Event, switches bool) []reel.Event {
	for _, e := range events {
		if _, is := e.Goroutine(); switches {
			if is {
				open = append(open[:0], e)
			}
			continue
		}
		n := len(open)
		for n > 0 && open[n-1].SP <= e.SP {
			n--
		}
		if open = open[:n]; !e.IsExit() {
			open = append(open, e)
		}
	}
	return open
}

func entries(open []Open) (list []reel.Event) {
	for _, o := range open {
		list = append(list, o.Event)
	}
	return list
}

// What is held of each thread is what it had called last, to the last event, with what the events carry, the marks, and the calls that were open
// before; it is all that it has called since the store reaches back; and it takes no more memory than it may.
func TestTheStoreHoldsWhatThreadsCalledLast(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			memory := 2 << 20
			goroutines := seed%4 == 3
			s := New(Config{Memory: memory, Mode: reel.ClockFull, Goroutines: goroutines, Translate: translate})
			defer s.Close()
			callers := make([]*caller, 1+rng.IntN(40))
			for i := range callers {
				callers[i] = &caller{rng: rng, tid: 100 + i, switches: goroutines, plain: seed > 2}
			}
			now := uint64(1)
			check := func() {
				held, err := s.Hold()
				if err != nil {
					t.Fatal(err)
				}
				defer s.Release(held)
				if used := s.Stats().Used; used > memory {
					t.Fatalf("%d bytes are used of %d", used, memory)
				}
				for _, h := range held {
					wantHeld(t, callers[h.TID-100], h, s.Stats().Reaches)
				}
			}
			for round := range 250 {
				c := callers[rng.IntN(1+rng.IntN(len(callers)))]
				now = max(now, c.now)
				switch rng.IntN(50) {
				case 0: // a chunk was overwritten before it was taken
					c.chunk(10, now)
					c.all[len(c.all)-1].Torn = -1 // missing
					c.open = nil
					continue
				case 1:
					if err := s.Rest(now - min(now, 20000)); err != nil {
						t.Fatal(err)
					}
				}
				n := ring.ChunkEvents
				if rng.IntN(3) == 0 {
					n = 1 + rng.IntN(300)
				}
				h := c.chunk(n, now)
				if !goroutines && rng.IntN(3) > 0 {
					named(&h)
				}
				if err := s.Add(&h); err != nil {
					t.Fatal(err)
				}
				if round%100 == 99 {
					check()
				}
			}
			check()
			if s.Stats().Reaches == 0 {
				t.Log("nothing was dropped")
			}
		})
	}
}

// wantHeld compares what is held of a thread with what it has called.
func wantHeld(t *testing.T, c *caller, h Held, reaches uint64) {
	t.Helper()
	first := h.Next
	if h.To == 0 {
		first = 0
	}
	open := entries(h.Open)
	at := int(first) // in c.all, where a chunk's place is its number
	if h.To > reaches {
		t.Fatalf("thread %d: chunks up to %d are dropped, and all is to be there since %d", h.TID, h.To, reaches)
	}
	var want []reel.Event
	for k := range first {
		if c.all[k].Torn < 0 {
			want = nil
			continue
		}
		want = openAfter(want, c.all[k].Events, c.switches)
	}
	held := h.Open
	for i, k := range h.Chunks {
		if i == 0 && k.Seq == h.Next && !k.Fresh && !slices.Equal(open, want) {
			t.Fatalf("thread %d: open calls %v, want %v", h.TID, open, want)
		}
		for at < int(k.Seq) && c.all[at].Torn < 0 {
			at++
			want = nil
		}
		if at != int(k.Seq) {
			t.Fatalf("thread %d: chunk %d isn't there, but %d", h.TID, at, k.Seq)
		}
		run, err := k.Run(targets(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var all ring.Run
		for ; at < int(k.Next); at++ {
			w := &c.all[at]
			for _, p := range w.Payloads {
				all.Payloads = append(all.Payloads, ring.Payload{Event: p.Event + len(all.Events), Data: p.Data})
			}
			for _, p := range w.MarkPayloads {
				all.MarkPayloads = append(all.MarkPayloads, ring.Payload{Event: p.Event + len(all.Marks), Data: p.Data})
			}
			all.Events, all.Marks = append(all.Events, w.Events...), append(all.Marks, w.Marks...)
			want = openAfter(want, w.Events, c.switches)
		}
		same := func(a, b []ring.Payload) bool {
			return slices.EqualFunc(a, b, func(p, q ring.Payload) bool { return p.Event == q.Event && string(p.Data) == string(q.Data) })
		}
		if !slices.Equal(run.Events, all.Events) || !slices.Equal(run.Marks, all.Marks) || !same(run.Payloads, all.Payloads) || !same(run.MarkPayloads, all.MarkPayloads) {
			t.Fatalf("thread %d, chunk %d to %d: %d events, %d marks, %d and %d payloads; want %d, %d, %d, %d", h.TID, k.Seq, k.Next, len(run.Events), len(run.Marks),
				len(run.Payloads), len(run.MarkPayloads), len(all.Events), len(all.Marks), len(all.Payloads), len(all.MarkPayloads))
		}
		held = k.After(held)
		if !slices.Equal(entries(held), want) {
			t.Fatalf("thread %d, chunk %d to %d: open calls %v, want %v", h.TID, k.Seq, k.Next, entries(held), want)
		}
	}
	for at < len(c.all) && c.all[at].Torn < 0 {
		at++
	}
	if at != len(c.all) {
		t.Fatalf("thread %d: chunk %d isn't there", h.TID, at)
	}
}

// A chunk that is written to a reel reads as it was.
func TestChunksAreWrittenAsTheyAre(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	s := New(Config{Memory: 8 << 20, Mode: reel.ClockFull, Translate: translate})
	defer s.Close()
	c := &caller{rng: rng, tid: 100}
	for i := range 60 {
		h := c.chunk([]int{ring.ChunkEvents, 10}[i/59], 0)
		if err := s.Add(&h); err != nil {
			t.Fatal(err)
		}
	}
	held, err := s.Hold()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release(held)
	path := t.TempDir() + "/x.reel"
	w, err := reel.Create(path, reel.Header{Clock: reel.Clock{Mode: reel.ClockFull, TicksPerSecond: 1e9}}, reel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tw, err := w.Thread(reel.Thread{TID: 100})
	if err != nil {
		t.Fatal(err)
	}
	before := reel.Entry(0, 1<<30+16, 3)
	if err := tw.Append([]reel.Event{before}); err != nil {
		t.Fatal(err)
	}
	want := []reel.Event{before}
	for _, k := range held[0].Chunks {
		if err := k.AppendTo(tw, []reel.ValueSet{{Number: 3, Function: 7, Time: 9, SP: 5, Values: []reel.Value{{Bits: uint64(len(want))}}}}); err != nil {
			t.Fatal(err)
		}
		run, err := k.Run(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, run.Events...)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := reel.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var got []reel.Event
	f.ReadThread(tw.Key(), func(events []reel.Event, missing bool) bool {
		if missing {
			t.Error("events are missing")
		}
		got = append(got, events...)
		return true
	})
	if !slices.Equal(got, want) {
		t.Errorf("%d events, want %d", len(got), len(want))
	}
	if d := f.Damage(); len(d) > 0 {
		t.Errorf("damage: %v", d)
	}
}
