package live

import (
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// begun is a meter of a process with two functions, whose ticks are nanoseconds, and a thread of it.
func begun(t *testing.T, stretch time.Duration) (m *Meter, at uint64, push func(events ...reel.Event)) {
	t.Helper()
	m = NewMeter(stretch)
	realtest.Must(t, m.Begin(reel.Header{Clock: reel.Clock{TicksPerSecond: 1e9, BaseTick: 1 << 40, BaseUnixNS: time.Now().UnixNano()}}))
	_, err := m.AddImage(reel.Image{Path: "/usr/bin/prog"})
	realtest.Must(t, err)
	first, err := m.AddFunctions([]reel.Function{{Name: "_ZN3foo3barEv", Image: 1}, {Name: "work"}})
	realtest.Must(t, err)
	if first != 1 {
		t.Fatalf("the first function is %d", first)
	}
	thread, err := m.Thread(reel.Thread{TID: 77, Name: "main"})
	realtest.Must(t, err)
	return m, m.base, func(events ...reel.Event) { realtest.Must(t, thread.Append(events)) }
}

const sp = 0x7000

func TestSnapshotHasTheLastStretchesAndAllOfThem(t *testing.T) {
	m, at, push := begun(t, time.Second)
	w := NewRecent(m, 2)
	for i := range uint64(4) {
		from := at + i*1e9
		push(reel.Entry(from+100, sp, 1), reel.Exit(from+100+(i+1)*1000, sp, 1))
		if i == 3 {
			push(reel.Entry(from+1e8, sp, 2))
		}
		realtest.Must(t, m.Round(from+1e9))
		w.Add(<-m.Stretches())
	}
	s := w.Snapshot(false)
	if s.Elapsed != 2*time.Second || s.Calls != 3 || len(s.Functions) != 2 {
		t.Fatalf("%+v", s)
	}
	f := s.Functions[0]
	if f.Name != "foo::bar()" || f.Short != "foo::bar" || f.Module != "prog" || f.Calls != 2 || f.PerSecond != 1 || f.Self != 7000 || f.Max != 4000 || !f.Whole || f.P99 < 3970 || f.P99 > 4000 {
		t.Errorf("%+v", f)
	}
	if f := s.Functions[1]; f.Name != "work" || f.Module != "" || f.Open != 1 || f.Self != 9e8 || f.Max != 9e8 || f.Whole {
		t.Errorf("%+v", f)
	}
	if th := s.Threads; len(th) != 1 || th[0].TID != 77 || th[0].Name != "main" || th[0].In != "work" || th[0].For != 9e8 || th[0].Depth != 1 {
		t.Errorf("%+v", th)
	}
	if s := w.Snapshot(true); s.Elapsed != 4*time.Second || s.Calls != 5 || s.Functions[0].Self != 10_000 {
		t.Errorf("since the beginning: %+v", s)
	}
}

// Whoever doesn't fetch stretches gets longer ones, and the recorder never waits.
func TestStretchesThatNobodyFetchesGetLonger(t *testing.T) {
	m, at, push := begun(t, time.Second)
	for i := range uint64(50) {
		push(reel.Entry(at+i*1e9+100, sp, 2), reel.Exit(at+i*1e9+200, sp, 2))
		realtest.Must(t, m.Round(at+(i+1)*1e9))
	}
	realtest.Must(t, m.Close())
	w := NewRecent(m, 1)
	rest := m.Rest()
	if len(rest) != 2 {
		t.Fatalf("%d stretches", len(rest))
	}
	for i, want := range []uint64{1, 49} {
		w.Add(rest[i])
		if s := w.Snapshot(false); s.Calls != want {
			t.Errorf("stretch %d: %d calls, want %d", i, s.Calls, want)
		}
	}
	if more := m.Rest(); len(more) > 0 {
		t.Errorf("%d stretches are left", len(more))
	}
}

// Threads that have ended are forgotten, and functions that nobody has named have calls.
func TestWhatEndsIsForgotten(t *testing.T) {
	m, at, push := begun(t, time.Second)
	w := NewRecent(m, 2)
	for i := range uint64(100) {
		from := at + i*1e9
		thread, err := m.Thread(reel.Thread{TID: int(i)})
		realtest.Must(t, err)
		realtest.Must(t, thread.Append([]reel.Event{reel.Entry(from+1, sp, 1<<29), reel.Exit(from+2, sp, 1<<29)}))
		realtest.Must(t, thread.Dropped(3, 0, from+2))
		realtest.Must(t, thread.End(from+3))
		push(reel.Entry(from+4, sp, 1), reel.Exit(from+5, sp, 1))
		realtest.Must(t, m.Round(from+1e9))
		w.Add(<-m.Stretches())
	}
	s := w.Snapshot(false)
	if len(m.threads) != 2 || len(s.Threads) != 2 || s.Threads[1].TID != 99 || !s.Threads[1].Ended || s.Threads[1].Dropped != 3 {
		t.Errorf("%d threads are known; %+v", len(m.threads), s.Threads)
	}
	if f := s.Functions[0]; f.ID != 0 || f.Calls != 2 || f.Name == "" || s.Dropped != 6 {
		t.Errorf("%+v, %d dropped", f, s.Dropped)
	}
}
