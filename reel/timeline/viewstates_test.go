package timeline

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

const statesBase = 1 << 40

// statesReel is a reel whose threads have states and no calls, one of them neither.
type statesReel struct {
	path    string
	w       *reel.Writer
	threads []*reel.ThreadWriter
	words   [][]reel.SchedEvent
}

func newStatesReel(t testing.TB, rate uint64, words ...[]reel.SchedEvent) *statesReel {
	t.Helper()
	r := &statesReel{path: filepath.Join(t.TempDir(), "states.reel"), words: words}
	r.w = madereel.Create(t, r.path, reel.Header{Clock: reel.Clock{TicksPerSecond: rate, BaseTick: statesBase, BaseUnixNS: 1}}, reel.Image{})
	realtest.Must(t, r.w.Scheduling(reel.Scheduling{Source: "bpf", WakeUps: true, Faults: true}))
	for i := range words {
		r.threads = append(r.threads, madereel.Thread(t, r.w, reel.Thread{TID: 100 + i}))
	}
	madereel.Thread(t, r.w, reel.Thread{TID: 99})
	return r
}

// write writes the next n words of each thread, and says whether there are more.
func (r *statesReel) write(t testing.TB, n int) (more bool) {
	t.Helper()
	known := uint64(0)
	for i := range r.words {
		k := min(n, len(r.words[i]))
		realtest.Must(t, r.threads[i].Sched(r.words[i][:k]))
		if k > 0 {
			known = max(known, r.words[i][k-1].Time)
		}
		r.words[i] = r.words[i][k:]
		more = more || len(r.words[i]) > 0
	}
	realtest.Must(t, r.w.Flush())
	return more
}

// sumsOf is what intervals and page faults of a thread sum up to between two ticks, found in the plainest way.
func sumsOf(f *reel.File, key uint32, from, to uint64) (sum stateSums) {
	first := f.FirstTick()
	r := f.States(key)
	for x, ok := r.Next(); ok; x, ok = r.Next() {
		start, end := max(x.From, first, from), min(x.To, to)
		if start < end {
			sum.spend(&stateInterval{state: x.State, uninterruptible: x.Uninterruptible}, end-start)
		}
	}
	f.Faults(key, from, to, func(x reel.Fault) bool {
		sum.count(&stateFault{major: x.Major})
		return true
	})
	return sum
}

// checkStates looks at cells of all sizes all over the recording.
func checkStates(t *testing.T, tl *Timeline, rng *rand.Rand, times int) {
	t.Helper()
	s := tl.live.Load()
	f := s.f
	for _, l := range s.lanes {
		if l.states == nil {
			if l.TID != 99 && sumsOf(f, l.Thread, 0, 1<<62) != (stateSums{}) {
				t.Errorf("thread %d has no states", l.TID)
			}
			continue
		}
		for range times {
			grain := uint(rng.IntN(42))
			from := rng.Uint64N(s.end + 1)
			c := s.stateCells(l, from, min(s.end+1, from+1<<grain*uint64(1+rng.IntN(9))), grain)
			for i := range c.cells {
				start := (c.first+uint64(i))<<grain + s.clock.first
				if want := sumsOf(f, l.Thread, start, start+1<<grain); c.cells[i] != want {
					t.Fatalf("thread %d, cell %d of 1<<%d ticks: %+v, want %+v", l.TID, c.first+uint64(i), grain, c.cells[i], want)
				}
			}
			to := from + rng.Uint64N(s.end+1-from)
			got := s.stateTimes(l, from, to)
			if want := sumsOf(f, l.Thread, from+s.clock.first, to+s.clock.first); got != want {
				t.Fatalf("thread %d from %d to %d: %+v, want %+v", l.TID, from, to, got, want)
			}
		}
	}
}

func someStates(seed uint64) [][]reel.SchedEvent {
	rng := rand.New(rand.NewPCG(seed, 1))
	var words [][]reel.SchedEvent
	for i, n := range []int{1, 40, 30_000, 9_000} {
		words = append(words, madereel.SchedWords(rng, n, statesBase+rng.Uint64N(1e6), []float64{1e5, 1e9, 2e4, 3e5}[i]))
	}
	// One that sleeps for long between bursts.
	at := uint64(statesBase)
	var bursts []reel.SchedEvent
	for range 6 {
		burst := madereel.SchedWords(rng, 3000, at, 3000)
		at = burst[len(burst)-1].Time + 1<<36
		bursts = append(bursts, burst...)
	}
	return append(words, bursts)
}

func TestStatesAreThoseOfAllIntervals(t *testing.T) {
	for _, rate := range []uint64{1e9, 2_450_000_000} {
		r := newStatesReel(t, rate, someStates(rate)...)
		r.write(t, 1<<30)
		realtest.Must(t, r.w.Close())
		_, tl := openTest(t, r.path, Options{})
		checkStates(t, tl, rand.New(rand.NewPCG(rate, 2)), 25)
	}
}

func TestStatesOfAGrowingReelAreThoseOfAllIntervals(t *testing.T) {
	r := newStatesReel(t, 1e9, someStates(5)...)
	rng := rand.New(rand.NewPCG(5, 2))
	r.write(t, 100)
	_, tl := openTest(t, r.path, Options{})
	for more := true; more; {
		checkStates(t, tl, rng, 4)
		more = r.write(t, 1+rng.IntN(12_000))
		if _, err := tl.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if rng.IntN(2) == 0 {
			realtest.Must(t, tl.SumStates(t.Context(), 0))
		}
	}
	realtest.Must(t, r.w.Close())
	if _, err := tl.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkStates(t, tl, rng, 10)
}

// A view has the states of the lanes that it is asked for, each pixel once.
func TestViewsHaveStates(t *testing.T) {
	r := newStatesReel(t, 1e9, someStates(9)...)
	r.write(t, 1<<30)
	realtest.Must(t, r.w.Close())
	f, tl := openTest(t, r.path, Options{})
	q := Query{From: 0, To: tl.Duration(), Width: 1000, States: true, Quick: true}
	for _, l := range tl.Lanes() {
		if want := l.TID != 99; l.States != want {
			t.Errorf("thread %d has states: %v", l.TID, l.States)
		}
		q.Lanes = append(q.Lanes, LaneRows{Lane: l.ID})
	}
	v, err := tl.View(t.Context(), q)
	if err != nil || !v.Coarse || len(v.States) != 0 {
		t.Fatalf("a quick view before states are summed up: coarse %v, %d lanes with states, %v", v.Coarse, len(v.States), err)
	}
	summed := q
	summed.Quick, summed.Summed = false, true
	if v, err := tl.View(t.Context(), summed); err != nil || v.Coarse || !v.Unsummed || len(v.States) != 0 {
		t.Fatalf("a view of what is summed up, before that is: coarse %v, unsummed %v, %d lanes with states, %v", v.Coarse, v.Unsummed, len(v.States), err)
	}
	realtest.Must(t, tl.SumStates(t.Context(), 1))
	if v, err := tl.View(t.Context(), summed); err != nil || v.Unsummed || len(v.States) != 5 {
		t.Fatalf("and after it: unsummed %v, %d lanes with states, %v", v.Unsummed, len(v.States), err)
	}
	rng := rand.New(rand.NewPCG(9, 3))
	for range 40 {
		v, err := tl.View(t.Context(), q)
		realtest.Must(t, err)
		if v.Coarse || len(v.States) != 5 {
			t.Fatalf("coarse %v, %d lanes with states", v.Coarse, len(v.States))
		}
		for _, l := range v.States {
			if len(l.Spans) > 2*q.Width {
				t.Errorf("%d spans of %d pixels", len(l.Spans), q.Width)
			}
			end := uint64(0)
			for _, x := range l.Spans {
				known := x.Running + x.Ready + x.Blocked
				if x.Start < end || x.Duration == 0 || known > x.Duration || x.Uninterruptible > x.Blocked {
					t.Fatalf("%+v behind %d", x, end)
				}
				end = x.Start + x.Duration
			}
		}
		q.From = rng.Uint64N(tl.Duration())
		q.To = q.From + max(1, (tl.Duration()-q.From)>>rng.IntN(30))
	}
	// The interval at an instant is the reel's.
	for range 100 {
		at := rng.Uint64N(tl.Duration())
		x, ok := tl.StateAt(2, at)
		want := f.States(3)
		want.Seek(at + statesBase)
		y, there := want.Next()
		there = there && y.From <= at+statesBase
		if ok != there || ok && (x.From+statesBase != y.From || x.To+statesBase != y.To || x.State != y.State || x.Waker != y.Waker) {
			t.Fatalf("at %d: %+v (%v), want %+v (%v)", at, x, ok, y, there)
		}
	}
}
