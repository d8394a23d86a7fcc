package sched

import (
	"encoding/binary"
	"testing"
)

// FuzzRing reads whatever is in a ring of the programs: it ends, and reads each record once at most.
func FuzzRing(f *testing.F) {
	f.Add(make([]byte, 4*recordSize), uint64(3), uint64(0))
	f.Add(make([]byte, 4*recordSize), ^uint64(0), uint64(7))
	f.Fuzz(func(t *testing.T, data []byte, head, lost uint64) {
		const places = 16
		r := &bpfRing{counts: lost%2 == 0, state: make([]byte, stateSize), data: make([]byte, places*recordSize)}
		copy(r.data, data)
		for k := range min(head, places) { // else nothing is read
			binary.LittleEndian.PutUint32(r.data[k*recordSize+recCommit:], uint32(k+1))
		}
		binary.LittleEndian.PutUint64(r.state[stateHead:], head)
		binary.LittleEndian.PutUint64(r.state[stateLost:], lost)
		r.load(1 << 62)
		if len(r.windows()) > places+1 {
			t.Errorf("%d holes in %d records", len(r.windows()), places)
		}
		n := 0
		for {
			if _, ok := r.peek(); !ok {
				break
			}
			var out [2]told
			if r.take(&out) > 2 {
				t.Error("more than two threads")
			}
			if n++; n > places {
				t.Fatal("more records than places")
			}
		}
		r.release()
	})
}

// FuzzTexts reads what /proc has of threads.
func FuzzTexts(f *testing.F) {
	f.Add([]byte("1 (a) b) S 0 0 0 0 -1 4194624 55507 8601 0 2436 111 143 213468 44685 20 0 11 0 16 48713728 4818 18446744073709551615 1 1 0 0 0 0 0 4096 1 0 0 0 17 1 0 0"))
	f.Add([]byte("12 34 5\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, cpu, ok := parseTaskStat(text); ok && cpu < -1<<31 {
			t.Error(cpu)
		}
		_, _ = parseSums(text)
	})
}

func TestATaskIsReadPastItsName(t *testing.T) {
	state, cpu, ok := parseTaskStat([]byte("1 (a) R 9) S 0 0 0 0 -1 4194624 55507 8601 0 2436 111 143 213468 44685 20 0 11 0 16 48713728 4818 18446744073709551615 1 1 0 0 0 0 0 4096 1 0 0 0 17 3 0 0"))
	if !ok || state != 'S' || cpu != 3 {
		t.Errorf("%c %d %v", state, cpu, ok)
	}
}

// TestTheKernelsClockIsMappedPieceByPiece: whatever it is turned by, times stay between the pairs around them.
func TestTheKernelsClockIsMappedPieceByPiece(t *testing.T) {
	c := clock{to: pair{1_000_000_000, 5_000_000_000}}
	c.from = c.to
	last := uint64(0)
	for i, rate := range []float64{2.6, 2.6, 2.61, 2.4, 2.6} {
		c.from, c.to = c.to, pair{c.to.ns + 1e8, c.to.tick + uint64(rate*1e8)}
		c.rate = float64(c.to.tick-c.from.tick) / float64(c.to.ns-c.from.ns)
		for ns := c.from.ns; ns <= c.to.ns; ns += 1e7 {
			tick := c.ticks(ns)
			if tick < last || tick < c.from.tick || tick > c.to.tick {
				t.Fatalf("piece %d: %d ns is tick %d, outside of %d to %d", i, ns, tick, c.from.tick, c.to.tick)
			}
			last = tick
		}
		if c.ticks(c.to.ns) != c.to.tick {
			t.Errorf("piece %d: its end is at %d, not %d", i, c.ticks(c.to.ns), c.to.tick)
		}
	}
}

// TestTimesOfTheLastMomentsKeepTheirPieces: what is told late is turned into ticks as it would have been at once.
func TestTimesOfTheLastMomentsKeepTheirPieces(t *testing.T) {
	for _, apart := range []uint64{3e5, 2e6, 3e7} {
		c := clock{to: pair{1_000_000_000, 5_000_000_000}}
		c.from = c.to
		was := map[uint64]uint64{}
		for i := range 200 {
			next := pair{c.to.ns + apart, c.to.tick + 2*apart + uint64(i%3)*apart/1000}
			c.from, c.to = c.to, next
			c.rate = float64(c.to.tick-c.from.tick) / float64(c.to.ns-c.from.ns)
			c.keep()
			for ns := c.from.ns; ns <= c.to.ns; ns += apart / 4 {
				was[ns] = c.ticks(ns)
			}
			off := uint64(0)
			if apart < kept/keptMost {
				off = apart / 500 // pieces were joined
			}
			for ns, tick := range was {
				if ns+2*latest < c.to.ns {
					delete(was, ns)
				} else if now := c.ticks(ns); now > tick+off || tick > now+off {
					t.Fatalf("each %d ns: %d ns before the end is tick %d, and was %d", apart, c.to.ns-ns, now, tick)
				}
			}
			if len(c.before) > 2*keptMost {
				t.Fatalf("%d pairs are kept", len(c.before))
			}
		}
	}
}
