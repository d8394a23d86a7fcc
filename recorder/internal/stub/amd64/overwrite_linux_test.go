package amd64

import (
	"fmt"
	"math"
	"testing"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// keep copies what the rings hold, frozen, and returns each thread's runs.
func (d *driver) keep(k *ring.Snapshotter) map[int][]ring.Run {
	d.t.Helper()
	k.Freeze()
	all, err := k.Take(ring.Ticks())
	if err != nil {
		d.t.Fatal(err)
	}
	threads := map[int][]ring.Run{}
	for _, h := range all {
		threads[h.TID] = append(threads[h.TID], h)
	}
	k.Thaw()
	return threads
}

// contiguous returns a thread's last runs that have no gap between them, as one.
func contiguous(runs []ring.Run) (events []reel.Event, first uint32) {
	from := len(runs) - 1
	for from > 0 && runs[from-1].Seq+1 == runs[from].Seq {
		from--
	}
	for _, h := range runs[from:] {
		events = append(events, h.Events...)
	}
	return events, runs[from].Seq
}

// checkKept holds a thread's events, that end now, against what is true of the driver's calls: entry and exit of each call, from the same frame.
func checkKept(t *testing.T, who string, events []reel.Event, maxID uint32, dropped uint64) {
	t.Helper()
	s := &tally{maxID: maxID}
	if err := s.Append(events); err != nil {
		t.Fatal(err)
	}
	if s.unknown != 0 || s.untimed != 0 || s.backward != 0 {
		t.Errorf("%s: %d events of unknown functions, %d without a time, %d go back in time", who, s.unknown, s.untimed, s.backward)
	}
	const deepest = 2 * 14 // calls that were open when the oldest event was written, some of a handler
	// Others are of calls that were dropped while the rings were frozen for a copy before this: one each at most.
	if s.abandoned != 0 || s.unmatched > deepest+dropped {
		t.Errorf("%s: of %d events %d entries have no exit, %d exits no entry", who, len(events), s.abandoned, s.unmatched)
	}
}

func TestOverwritingKeepsEveryRegister(t *testing.T) {
	for name, s := range map[string]stubSetup{"inline": {}, "shared": {shared: true}, "tracked": {predicates: 3}} {
		t.Run(name, func(t *testing.T) {
			s.chunks, s.over = 2*ring.MinChunks, true
			d := startDriver(t, s)
			if s.predicates > 0 {
				w, err := d.mem.PredicatesAt(ring.Size(s.chunks))
				if err != nil {
					t.Fatal(err)
				}
				w.Arm(true)
				w.Set(0, ring.Predicate{Kind: ring.PredicateResult, Bits: 32, Signed: true, Low: math.MinInt64, High: -1})
				w.Set(1, ring.Predicate{Kind: ring.PredicateNumber, Low: 100, High: 200})
				w.Set(2, ring.Predicate{Kind: ring.PredicateDuration, Low: 0, High: 10, Not: true})
			}
			d.do("state %d", 3000)
			k := ring.NewSnapshotter(d.mem.Memory)
			k.Freeze()
			d.do("state %d", 3000) // drops
			k.Thaw()
			d.do("state %d", 1000)
		})
	}
}

// One thread's last events are all there, whatever the state of its chunk, and in the right number.
func TestTheLastEventsAreHeld(t *testing.T) {
	d := startDriver(t, stubSetup{chunks: 16, over: true})
	k := ring.NewSnapshotter(d.mem.Memory)
	for round := range 40 {
		d.do("calls %d", 1+round*977)
		threads := d.keep(k)
		events, first := contiguous(threads[d.cmd.Process.Pid])
		made := d.number("made")
		if want := 2*made - int(first)*ring.ChunkEvents; len(events) != want {
			t.Fatalf("round %d: %d events from chunk %d on, want %d", round, len(events), first, want)
		}
		const held = 12*ring.ChunkEvents - ring.ChunkEvents // all but the reserve, less what is left of the last
		if len(events) < min(2*made, held) {
			t.Errorf("round %d: only %d events are held of %d", round, len(events), 2*made)
		}
		checkKept(t, fmt.Sprint("round ", round), events, 8, 0)
	}
}

// Full chunks that are taken in time are all taken, once and in their order, and with what the rings hold besides they are all that there was.
func TestFullChunksAreTakenBeforeTheyAreOverwritten(t *testing.T) {
	for _, storm := range []int{0, 50} {
		t.Run(fmt.Sprintf("a signal every %d µs", storm), func(t *testing.T) {
			chunks := 64
			if storm > 0 { // on a busy machine so many signals come during a round that they fill half of them
				chunks = 1024
			}
			d := startDriver(t, stubSetup{chunks: chunks, over: true})
			k := ring.NewSnapshotter(d.mem.Memory)
			defer k.Close()
			k.TakesFull()
			d.do("storm %d", storm)
			var all []reel.Event
			tid, next := d.cmd.Process.Pid, uint32(0)
			for round := range 60 {
				d.do("calls %d", 1+round*577) // up to 17 chunks
				d.mem.Beat()
				if _, err := k.TakeFull(ring.Names{}, func(h *ring.Run) error {
					if h.TID != tid || h.Seq != next {
						t.Fatalf("round %d: chunk %d of thread %d, want %d of %d", round, h.Seq, h.TID, next, tid)
					}
					next++
					all = append(all, h.Events...)
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				runs, err := k.Take(ring.Ticks())
				if err != nil {
					t.Fatal(err)
				}
				events, seq := all[:len(all):len(all)], next
				for _, h := range runs {
					if h.TID != tid || h.Seq != seq {
						t.Fatalf("round %d: chunk %d of thread %d is in the rings, want %d of %d", round, h.Seq, h.TID, seq, tid)
					}
					seq++
					events = append(events, h.Events...)
				}
				if storm == 0 {
					if made := d.number("made"); len(events) != 2*made {
						t.Fatalf("round %d: %d events, want %d", round, len(events), 2*made)
					}
				}
				ring.InOrder(events)
				checkKept(t, fmt.Sprint("round ", round), events, 8, 0)
			}
			if next < 200 {
				t.Errorf("only %d chunks were taken", next)
			}
			d.do("storm 0")
		})
	}
}

// A thread that calls seldom isn't robbed of its last events by those that call much.
func TestAnIdleThreadKeepsItsLastEvents(t *testing.T) {
	d := startDriver(t, stubSetup{chunks: 32, over: true})
	k := ring.NewSnapshotter(d.mem.Memory)
	d.do("calls 50")
	d.do("crowd 3 500000")
	events, first := contiguous(d.keep(k)[d.cmd.Process.Pid])
	if first != 0 || len(events) != 100 {
		t.Errorf("%d events from chunk %d on", len(events), first)
	}
}

// Copies while four threads call as fast as they can, with signals: each thread's events are whole, and end when the copy was made.
func TestCopiesOfBusyRingsAreWhole(t *testing.T) {
	for _, storm := range []int{0, 50} {
		t.Run(fmt.Sprintf("a signal every %d µs", storm), func(t *testing.T) {
			d := startDriver(t, stubSetup{chunks: 64, over: true})
			k := ring.NewSnapshotter(d.mem.Memory)
			defer k.Close()
			d.do("storm %d", storm)
			d.send("crowd 4 3000000")
			ended := make(chan string, 1)
			go func() {
				line, _ := d.out.ReadString('\n')
				ended <- line
			}()
			copies := 0
			for done := false; !done; {
				select {
				case <-ended:
					done = true
				default:
				}
				d.mem.Beat()
				for tid, runs := range d.keep(k) {
					events, _ := contiguous(runs)
					ring.InOrder(events)
					checkKept(t, fmt.Sprintf("copy %d, thread %d", copies, tid), events, 8, k.Dropped(tid))
				}
				copies++
			}
			t.Logf("%d copies", copies)
			d.do("storm 0")
		})
	}
}

func TestThreadsWithoutAChunkDropAndCount(t *testing.T) {
	d := startDriver(t, stubSetup{chunks: ring.MinChunks, over: true}) // 6, and 2 in reserve
	k := ring.NewSnapshotter(d.mem.Memory)
	d.do("crowd 20 20000")
	dropped, kept := uint64(0), 0
	k.Meet(func(tid, _ int, name string) {
		dropped += k.Dropped(tid)
		kept++
	})
	if dropped == 0 || kept < 6 {
		t.Errorf("%d dropped by %d threads", dropped, kept)
	}
}

func TestTheGateIsClosedWhenTheRecorderIsDead(t *testing.T) {
	d := startDriver(t, stubSetup{chunks: 16, over: true})
	d.mem.setHeader(ring.HdrHeartbeat, 1)
	d.do("calls 100000")
	if d.number("isopen") != 0 {
		t.Error("the gate is still open")
	}
}
