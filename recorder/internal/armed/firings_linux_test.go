package armed

import (
	"encoding/binary"
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/ring/ringtest"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/recorder/internal/trigger"
)

// firer is a thread of a target whose calls fire, step by step.
type firer struct {
	mem []byte // the ring memory
	off uint64 // of the predicates
}

func (f *firer) counts() uint32 {
	return atomic.AddUint32((*uint32)(unsafe.Pointer(&f.mem[ring.HdrFired])), 1)
}

func (f *firer) freezes() {
	copy(f.mem[ring.HdrPool:], f.mem[ring.HdrGrace:][:8])
	binary.LittleEndian.PutUint64(f.mem[ring.HdrFrozenAt:], ring.Ticks())
}

// writes writes a firing of the call of a thread down, as the one of a number or as the one that froze the rings.
func (f *firer) writes(number uint32, tid int, freezer bool) {
	at := f.off + ring.FiringsOff + uint64(number%ring.Firings)<<ring.FiringShift
	if freezer {
		at = f.off + ring.FreezerOff
	}
	le, b := binary.LittleEndian, f.mem[at:]
	le.PutUint32(b[ring.FiringTID:], uint32(tid))
	le.PutUint32(b[ring.FiringPredicate:], 0)
	le.PutUint32(b[ring.FiringNumber:], number)
}

func startFirer(t *testing.T) (*firer, *Loop) {
	t.Helper()
	const chunks = 64
	m, mem := ringtest.MemoryWith(t, ring.Setup{Chunks: chunks, Overwrite: true, TicksPerSecond: 1e9}, ring.PredicatesSize)
	f := &firer{mem: mem, off: ring.Size(chunks)}
	w, err := m.PredicatesAt(f.off)
	if err != nil {
		t.Fatal(err)
	}
	when, err := trigger.Parse("request > 20ms")
	if err != nil {
		t.Fatal(err)
	}
	set := trigger.NewSet([]trigger.Trigger{when})
	set.Take(1, []string{"request"})
	set.Plan(t.Context(), &mapped.Image{Traced: []stub.Probe{{ID: 1}}}, t.Errorf)
	return f, &Loop{Config: Config{Triggers: set, TicksPerSecond: 1e9}, predicates: w, snapshots: ring.NewSnapshotter(m), threads: map[int]*thread{}}
}

// saw are the threads of what has fired that a look finds.
func (a *Loop) saw() (tids []int) {
	n := a.predicates.Fired()
	for _, c := range a.firings(n) {
		tids = append(tids, c.tid)
	}
	a.seen = n
	return tids
}

// A thread may be interrupted between any two steps, for longer than a look takes: what it has to say is seen by a later look, once.
func TestWhatIsWrittenDownLateIsSeen(t *testing.T) {
	f, a := startFirer(t)
	f.counts()
	if tids := a.saw(); len(tids) != 0 {
		t.Fatalf("saw %v", tids)
	}
	second := f.counts()
	f.writes(second, 102, false)
	f.freezes()
	f.writes(second, 102, true)
	if tids := a.saw(); !slices.Equal(tids, []int{102}) {
		t.Errorf("saw %v, want 102", tids)
	}
	f.writes(1, 101, false)
	if tids := a.saw(); !slices.Equal(tids, []int{101}) {
		t.Errorf("saw %v, want 101", tids)
	}
	if tids := a.saw(); len(tids) != 0 || len(a.late) != 0 {
		t.Errorf("saw %v once more", tids)
	}
	// What was written over by others isn't waited for.
	f.counts()
	a.saw()
	for range ring.Firings {
		f.writes(f.counts(), 103, false)
	}
	if tids := a.saw(); len(tids) != ring.Firings || len(a.late) != 0 {
		t.Errorf("saw %d, and looks for %v", len(tids), a.late)
	}
}

// Where a thread freezes the rings behind the look that has seen what it fired, they are let go, and the next freeze has its own cause.
func TestRingsThatAreFrozenLateAreLetGo(t *testing.T) {
	f, a := startFirer(t)
	first := f.counts()
	f.writes(first, 101, false)
	if tids := a.saw(); !slices.Equal(tids, []int{101}) {
		t.Fatalf("saw %v", tids)
	}
	f.freezes()
	f.writes(first, 101, true)
	if a.fired() || a.snapshots.Frozen() {
		t.Error("the rings are frozen still")
	}
	second := f.counts()
	f.writes(second, 102, false)
	f.freezes()
	go func() {
		time.Sleep(5 * time.Millisecond)
		f.writes(second, 102, true)
	}()
	if tids := a.saw(); !slices.Equal(tids, []int{102}) {
		t.Errorf("saw %v, want 102", tids)
	}
}
