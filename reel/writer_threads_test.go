package reel

import (
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// Threads that have ended take no memory in the Writer, however many there have been.
func TestThreadsThatHaveEndedAreForgottenWhenTheyAreWritten(t *testing.T) {
	for _, mode := range []ClockMode{ClockFull, ClockNone} {
		h := testHeader
		h.Clock.Mode = mode
		w, name := create(t, h)
		_, err := w.AddFunctions([]Function{{Name: "f"}})
		realtest.Must(t, err)
		const threads = 1000
		var last *ThreadWriter
		for i := range threads {
			tw := addThread(t, w, Thread{TID: i + 1})
			realtest.Must(t, tw.Append([]Event{Entry(uint64(i), 100, 1)}))
			realtest.Must(t, tw.End(uint64(i)))
			if i%100 == 99 {
				realtest.Must(t, w.Flush())
				if n := len(w.threads); n != 0 {
					t.Fatalf("%d threads are kept of %d that have ended", n, i+1)
				}
			}
			last = tw
		}
		// What is still appended is written all the same.
		realtest.Must(t, last.Append([]Event{Exit(threads, 100, 1)}))
		realtest.Must(t, last.Dropped(3, 0, threads))
		realtest.Must(t, w.Flush())
		realtest.Must(t, last.Append([]Event{Entry(threads, 100, 1)}))
		realtest.Must(t, w.Close())
		f := open(t, name)
		if !f.Closed() || len(f.Threads()) != threads {
			t.Fatalf("%d threads, closed: %v", len(f.Threads()), f.Closed())
		}
		for _, th := range f.Threads() {
			events, _ := eventsOf(f, th.Key)
			want := 1
			if th.TID == threads {
				want = 3
			}
			if len(events) != want {
				t.Fatalf("thread %d has %d events, want %d", th.TID, len(events), want)
			}
		}
	}
}

// A reel of more chunks than an index is kept of is read as one that was not closed.
func TestAReelOfTooManyChunksHasNoIndex(t *testing.T) {
	w, name := create(t, testHeader)
	w.mostIndexed = 50
	_, err := w.AddFunctions([]Function{{Name: "f"}})
	realtest.Must(t, err)
	for i := range 100 {
		tw := addThread(t, w, Thread{TID: i + 1})
		realtest.Must(t, tw.Append([]Event{Entry(uint64(i), 100, 1)}))
		realtest.Must(t, tw.End(uint64(i)))
	}
	realtest.Must(t, w.Close())
	if w.index.count != 0 {
		t.Errorf("the index of %d chunks is kept", w.index.count)
	}
	f := open(t, name)
	if len(f.Threads()) != 100 || f.Events() != 100 || len(f.Damage()) != 0 {
		t.Errorf("%d threads, %d events, damage %v", len(f.Threads()), f.Events(), f.Damage())
	}
}

// Of many threads at once few have an encoder, whatever each has written.
func TestManyThreadsAtOnceTakeFewEncoders(t *testing.T) {
	const threads, rounds = 2000, 7
	w, name := create(t, testHeader)
	_, err := w.AddFunctions([]Function{{Name: "f"}})
	realtest.Must(t, err)
	var all []*ThreadWriter
	batch := make([]Event, 400)
	for i := range batch {
		batch[i] = Entry(uint64(i), uint32(1<<30-16*i), 1)
	}
	for i := range threads {
		all = append(all, addThread(t, w, Thread{TID: i + 1}))
	}
	for range rounds {
		for _, tw := range all {
			realtest.Must(t, tw.Append(batch))
		}
		if n := w.encoders.Load(); n > maxEncoders+1 {
			t.Fatalf("%d encoders", n)
		}
	}
	realtest.Must(t, w.Close())
	if n := w.encoders.Load(); n != 0 || len(w.idle) > maxEncoders {
		t.Errorf("%d encoders are held, %d idle", n, len(w.idle))
	}
	f := open(t, name)
	if f.Events() != threads*rounds*uint64(len(batch)) {
		t.Errorf("%d events", f.Events())
	}
	events, _ := eventsOf(f, all[threads-1].Key())
	for i, e := range events {
		if e != batch[i%len(batch)] {
			t.Fatalf("event %d is %+v", i, e)
		}
	}
}
