package sched

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// made is a processor whose records are made up.
type made struct {
	*bpfRing
	lost uint64
}

func newMade(places int) *made {
	r := &bpfRing{counts: true, state: make([]byte, stateSize), data: make([]byte, places*recordSize)}
	return &made{bpfRing: r}
}

func (m *made) add(time uint64, prev, next int32, word uint64, flags, count uint32) {
	place := *m.word(stateHead)
	b := m.data[place*recordSize%uint64(len(m.data)):][:recordSize]
	clear(b)
	binary.LittleEndian.PutUint64(b, time)
	if prev != 0 {
		binary.LittleEndian.PutUint32(b[recPrev:], 1)
		binary.LittleEndian.PutUint32(b[recPrev+4:], uint32(prev))
	}
	if next != 0 {
		word |= 1 | uint64(next)<<nextBits
	}
	binary.LittleEndian.PutUint64(b[recNext:], word)
	binary.LittleEndian.PutUint32(b[recFlags:], flags)
	binary.LittleEndian.PutUint32(b[recCount:], count)
	binary.LittleEndian.PutUint64(b[recCommit:], m.lost<<32|(place+1))
	*m.word(stateHead) = place + 1
}

// made0 is how much the kernel's clock is behind: its lower half goes round in the tests.
const made0 = uint64(4_294_000_000)

// switches tells of a switch at a time, up to late before which the kernel has counted.
func (m *made) switches(time, late uint64, prev, next int32, flags uint32) {
	m.add(time, prev, next, 0, flags, uint32(time-late-made0))
}

// queued says of the last record for how long who comes has been ready.
func (m *made) queued(ns uint32) {
	b := m.data[(*m.word(stateHead)-1)*recordSize%uint64(len(m.data)):]
	binary.LittleEndian.PutUint32(b[recQueued:], ns)
}

func (m *made) wakes(time uint64, tid int32) { m.add(time, tid, 0, 0, flagWoken, 0) }

const (
	forWait    = 1 // TASK_INTERRUPTIBLE
	forOthers  = flagPreempted
	madeStart  = uint64(4_293_000_000)
	madeWorker = 7
)

// madeWatcher has a clock with one tick a nanosecond.
func madeWatcher(rings ...*made) (*Watcher, func(bound uint64) []string) {
	s := &bpfSource{}
	for _, m := range rings {
		s.cpus = append(s.cpus, m.bpfRing)
	}
	s.all = asRings(s.cpus)
	w := &Watcher{source: s, clock: clock{rate: 1}, processes: map[int32]*watched{}, threads: map[int32]*thread{}, gone: map[int32]departed{}}
	return w, func(bound uint64) []string {
		var got []string
		w.yield = func(tid, _ int, e Event) {
			got = append(got, fmt.Sprintf("%d %v %d", tid, e.Kind, int64(e.Time-madeStart+50)/100*100)) // some ns are NTP's
		}
		for _, r := range s.all {
			r.load(bound)
		}
		w.mergeAll(s.all, bound)
		for _, r := range s.all {
			r.release()
		}
		w.limit, w.bound = bound, bound
		return got
	}
}

func TestBoundariesAreTheKernels(t *testing.T) {
	s, made0 := madeStart, made0
	calm := func(m *made) { // records that are late by the least that there is
		for k := range uint64(4) {
			m.switches(s-10_000+k*1000, 0, 99, 0, forWait)
		}
	}
	for _, c := range []struct {
		name string
		make func(m *made)
		want []string
	}{
		{"who is woken is charged from the wake-up on, and who is preempted up to there", func(m *made) {
			m.switches(s, 0, 0, 8, 0)
			m.wakes(s+50_300, madeWorker)
			m.switches(s+53_000, 3000, 8, madeWorker, forOthers)
			m.switches(s+80_000, 0, madeWorker, 8, forWait)
			m.switches(s+90_000, 0, 8, 0, forWait)
		}, []string{"8 in 0", "8 preempted 50000", "7 woken 50000", "7 in 50000", "7 blocked 80000", "8 in 80000", "8 blocked 90000"}},
		{"who is woken is ready from when the kernel counts", func(m *made) {
			m.wakes(s+50_000, madeWorker)
			m.switches(s+60_000, 0, 0, madeWorker, 0)
			m.queued(10_400)
			m.switches(s+80_000, 0, madeWorker, 0, forWait)
		}, []string{"7 woken 49600", "7 in 60000", "7 blocked 80000"}},
		{"but not from when it came to this processor, nor from before it waited", func(m *made) {
			m.wakes(s+50_000, madeWorker)
			m.switches(s+60_000, 0, 0, madeWorker, 0)
			m.queued(7000)
			m.switches(s+80_000, 0, madeWorker, 0, forWait)
			m.wakes(s+90_000, madeWorker)
			m.switches(s+95_000, 0, 0, madeWorker, 0)
			m.queued(1 << 31)
			m.switches(s+98_000, 0, madeWorker, 0, forWait)
		}, []string{"7 woken 50000", "7 in 60000", "7 blocked 80000", "7 woken 80000", "7 in 95000", "7 blocked 98000"}},
		{"who looked for another thread to run had stopped before", func(m *made) {
			m.switches(s, 0, 0, 8, 0)
			m.add(s+50_000, 8, 9, uint64(20_000)<<(2*nextBits), forWait, uint32(s+30_000-made0))
			m.switches(s+80_000, 0, 9, 0, forWait)
		}, []string{"8 in 0", "8 blocked 30000", "9 in 50000", "9 blocked 80000"}},
		{"what isn't counted comes first where the thread goes to wait", func(m *made) {
			m.switches(s, 0, 0, 8, 0)
			m.switches(s+80_000, 30_000, 8, 0, forWait)
			m.switches(s+90_000, 30_000, 99, 0, forWait)
		}, []string{"8 in 30000", "8 blocked 80000"}},
		{"and last where it is preempted", func(m *made) {
			m.switches(s, 0, 0, 8, 0)
			m.switches(s+80_000, 30_000, 8, 9, forOthers)
			m.switches(s+90_000, 30_000, 9, 0, forWait)
		}, []string{"8 in 0", "8 preempted 50000", "9 in 80000", "9 blocked 90000"}},
		{"the kernel's clock goes round", func(m *made) {
			m.switches(s, 0, 0, 8, 0)
			m.switches(s+2_000_000_000, 0, 8, 9, forOthers)
			m.switches(s+6_000_000_000, 2000, 9, 0, forOthers)
			m.switches(s+6_000_010_000, 0, 99, 0, forWait)
		}, []string{"8 in 0", "8 preempted 2000000000", "9 in 2000000000", "9 preempted 5999998000"}},
		{"a clock that jumps leaves the times as they were measured", func(m *made) {
			m.switches(s, 0, 0, 8, 0)
			m.add(s+50_000, 8, 9, 0, forWait, 0x12345678)
			m.add(s+60_000, 9, 8, 0, forWait, 0xfedcba98)
			m.switches(s+70_000, 0, 8, 0, forWait)
		}, []string{"8 in 0", "8 blocked 50000", "9 in 50000", "9 blocked 60000", "8 in 60000", "8 blocked 70000"}},
		{"nor does one that stands still take more than was measured", func(m *made) {
			m.add(s, 0, 8, 0, 0, 5)
			m.add(s+100_000_000, 8, 0, 0, forWait, 5)
		}, []string{"8 in 0", "8 blocked 100000000"}},
		{"what isn't known of who comes isn't taken for something", func(m *made) {
			m.switches(s, 0, 0, 8, 0)
			m.add(s+50_000, 8, 9, uint64(farthest)<<(2*nextBits), forWait, uint32(s+50_000-made0))
			m.switches(s+70_000, 0, 9, 0, forWait)
		}, []string{"8 in 0", "8 blocked 50000", "9 in 50000", "9 blocked 70000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMade(64)
			calm(m)
			c.make(m)
			w, drain := madeWatcher(m)
			for _, tid := range []int32{madeWorker, 8, 9} {
				th := w.newThread(&told{pid: 1, tid: tid}, s-20_000)
				th.state = ready
				if tid == madeWorker {
					th.state = waiting
				}
			}
			got := slices.DeleteFunc(drain(s+7_000_000_000), func(e string) bool { return e[:2] == "99" })
			if !slices.Equal(got, c.want) {
				t.Errorf("\n%q, not\n%q", got, c.want)
			}
		})
	}
}

// TestWhateverTheKernelsClockSaysEventsStayInOrder: nothing is before what was told of the thread, or before a bound.
func TestWhateverTheKernelsClockSaysEventsStayInOrder(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		m := newMade(1 << 10)
		w, _ := madeWatcher(m)
		last, bound := map[int]uint64{}, uint64(0)
		w.yield = func(tid, _ int, e Event) {
			if e.Time < last[tid] || e.Time < bound {
				t.Fatalf("seed %d: thread %d: %v at %d, after %d, bound %d", seed, tid, e.Kind, e.Time, last[tid], bound)
			}
			last[tid] = e.Time
		}
		now, on := madeStart, int32(0)
		waits := map[int32]bool{}
		for range 30 {
			for range rng.IntN(20) {
				now += rng.Uint64N(100_000)
				next := int32(rng.IntN(4))
				if next == on {
					continue
				}
				if waits[next] && next != 0 {
					m.wakes(now, next)
					now += rng.Uint64N(3000)
				}
				flags := []uint32{forWait, forOthers}[rng.IntN(2)]
				count := []uint32{uint32(now - made0), uint32(now - made0 - rng.Uint64N(5000)), rng.Uint32(), 0, uint32(now) + 1<<31}[rng.IntN(5)]
				m.add(now, on, next, rng.Uint64()<<(2*nextBits), flags, count)
				waits[on], on = flags == forWait, next
			}
			to := now - rng.Uint64N(20_000)
			if to < bound {
				continue
			}
			m.load(to)
			w.mergeAll([]ring{m.bpfRing}, to)
			m.release()
			w.limit, w.bound, bound = to, to, to
		}
	}
}

func BenchmarkDrain(b *testing.B) {
	m := newMade(1 << 16)
	m.counts = os.Getenv("NOCOUNT") == ""
	w, _ := madeWatcher(m)
	n := 0
	w.yield = func(int, int, Event) { n++ }
	w.newThread(&told{pid: 1, tid: 8}, 1)
	w.newThread(&told{pid: 1, tid: 9}, 1)
	now := uint64(made0)
	for b.Loop() {
		b.StopTimer()
		for range 5000 {
			m.switches(now+1000, 300, 8, 9, forWait)
			m.wakes(now+1500, 8)
			m.switches(now+2000, 320, 9, 8, forWait)
			m.wakes(now+2500, 9)
			now += 2000
		}
		b.StartTimer()
		m.load(now + 1000)
		w.mergeAll([]ring{m.bpfRing}, now+1000)
		m.release()
		w.limit, w.bound = now+1000, now+1000
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/event")
}

// TestAnExecEndsThreadsThatAreStillOnTheirWay: the kernel lets go on what it has called dead until it leaves its processor.
func TestAnExecEndsThreadsThatAreStillOnTheirWay(t *testing.T) {
	s := madeStart
	first, second := newMade(64), newMade(64)
	first.switches(s, 0, 0, 8, 0)
	second.switches(s+1000, 0, 0, madeWorker, 0)
	first.add(s+5000, 8, 0, 0, flagExec, 0)
	second.switches(s+6000, 0, madeWorker, 0, forOthers)
	second.switches(s+8000, 0, 0, madeWorker, 0)
	second.switches(s+9000, 0, madeWorker, 0, 0x80)
	second.wakes(s+20_000, madeWorker) // the number is another's now, by a begin that was told
	w, drain := madeWatcher(first, second)
	for _, tid := range []int32{madeWorker, 8} {
		w.newThread(&told{pid: 1, tid: tid}, s-20_000).state = ready
	}
	got := slices.DeleteFunc(drain(s+10_000), func(e string) bool { return e[0] != '7' })
	if want := []string{"7 in 1000", "7 ended 5000"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	w.tell(&told{time: s + 15_000, pid: 1, tid: madeWorker, kind: born})
	if w.threads[madeWorker] == nil {
		t.Error("a thread that has the number of one that ended isn't told")
	}
}

// TestALateRecordMovesWhatABoundWouldHaveFixed: what a thread runs begins before the drain that came between.
func TestALateRecordMovesWhatABoundWouldHaveFixed(t *testing.T) {
	const late = uint64(4_000_000)
	m := newMade(64)
	w, _ := madeWatcher(m)
	w.clock = clock{id: unix.CLOCK_MONOTONIC}
	if err := w.clock.start(); err != nil {
		t.Fatal(err)
	}
	w.limit, w.bound = w.clock.to.ns, w.clock.to.tick
	var in []uint64
	take := func(tid, _ int, e Event) {
		if tid == madeWorker && e.Kind == In {
			in = append(in, e.Time)
		}
	}
	now := func() uint64 {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			t.Fatal(err)
		}
		return uint64(ts.Nano())
	}
	began := now()
	for _, tid := range []int32{madeWorker, 8} {
		w.newThread(&told{pid: 1, tid: tid}, w.bound).state = ready
	}
	count := func(ns uint64) uint32 { return uint32(ns - made0) }
	m.add(began, 0, 8, 0, 0, count(began))
	time.Sleep(time.Duration(late) + 2*time.Millisecond)
	if err := w.drain(take, false); err != nil {
		t.Fatal(err)
	}
	at := now()
	m.add(at, 8, madeWorker, 0, forOthers, count(at-late))
	for k := range uint64(5) {
		m.add(at+1000+k*1000, 0, 99, 0, 0, count(at+1000+k*1000))
		m.add(at+1500+k*1000, 99, 0, 0, forWait, count(at+1500+k*1000))
	}
	if err := w.drain(take, false); err != nil {
		t.Fatal(err)
	}
	if len(in) != 0 {
		t.Fatal("what may still be moved was told")
	}
	if err := w.drain(take, true); err != nil {
		t.Fatal(err)
	}
	if len(in) != 1 {
		t.Fatalf("it came %d times", len(in))
	}
	if off := int64(in[0]) - int64(w.clock.ticks(at-late)); off < -5000 || off > 5000 {
		t.Errorf("it came %d ticks from when the kernel counts", off)
	}
}

// TestNothingIsToldOfAThreadThatHasEnded: its processor may be taken from it between its end and its last way out.
func TestNothingIsToldOfAThreadThatHasEnded(t *testing.T) {
	w, _ := madeWatcher(newMade(64))
	var got []Kind
	w.yield = func(_, _ int, e Event) { got = append(got, e.Kind) }
	s := madeStart
	w.newThread(&told{pid: 1, tid: madeWorker}, s).state = ready
	for i, kind := range []Kind{In, Ended, Preempted, In, Blocked, born, In} {
		w.tell(&told{time: s + 1000*uint64(i+1), pid: 1, tid: madeWorker, kind: kind})
	}
	if want := []Kind{In, Ended, Woken, In}; !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}
