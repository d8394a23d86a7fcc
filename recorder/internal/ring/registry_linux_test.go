package ring

import (
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/reel"
)

// resident is how many bytes of the memory there are.
func (m *Memory) resident(t testing.TB) int64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Fstat(m.fd, &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}

// Who registers threads that there are not takes nothing for each of them.
func TestRegistrationsAloneTakeNoMemory(t *testing.T) {
	m := newMemory(t, 8)
	d, all := collect(m)
	tid, before := 0, int64(0)
	for round := range 64 {
		n := atomic.LoadUint64(m.u64(HdrRegistered))
		for range RegistrySize {
			tid = (tid + 61) % MaxTID // each in a page of its own
			at := RegistryOff + n%RegistrySize*RegistryEntry
			atomic.StoreUint32(m.u32(at+RegTID), uint32(tid))
			n++
		}
		atomic.StoreUint64(m.u64(HdrRegistered), n)
		mustRound(t, d)
		var waiting []int
		d.Waiting(func(tid, _ int, _ time.Time) { waiting = append(waiting, tid) })
		if len(waiting) == 0 || len(waiting) > maxRegistrations {
			t.Fatalf("round %d: %d threads wait", round, len(waiting))
		}
		for _, tid := range waiting {
			if err := d.End(tid); err != nil {
				t.Fatal(err)
			}
		}
		if round == 0 {
			before = m.resident(t)
		}
	}
	mustRound(t, d)
	if grown := m.resident(t) - before; grown > 0 {
		t.Errorf("%d bytes of ring memory for threads that have written nothing", grown)
	}
	if len(d.order) > maxRegistrations || len(d.threads) > maxRegistrations || len(*all) != 0 || d.Totals().Threads != 0 {
		t.Errorf("%d threads in order, %d by ID, %d opened, %+v", len(d.order), len(d.threads), len(*all), d.Totals())
	}
}

// A thread that was killed while it registered doesn't keep others from being met, and one that was only slow is met later.
func TestARegistrationThatIsNotCompleteHoldsUpNoOther(t *testing.T) {
	m := newMemory(t, 24)
	d, all := collect(m)
	var slow []uint64
	for n := range 10 {
		slow = append(slow, atomic.AddUint64(m.u64(HdrRegistered), 1)-1)
		p := &producer{m, 100 + n}
		p.register("x")
		p.event(reel.Entry(1, 1, 1))
		mustRound(t, d)
		if len(*all) != n+1 {
			t.Fatalf("%d threads met, want %d", len(*all), n+1)
		}
	}
	for k, n := range slow[:5] {
		p := &producer{m, 200 + k}
		p.event(reel.Entry(1, 1, 1))
		atomic.StoreUint32(m.u32(RegistryOff+n%RegistrySize*RegistryEntry+RegTID), uint32(p.tid))
	}
	mustRound(t, d)
	if len(*all) != 15 || len(d.registry.open) != 5 {
		t.Errorf("%d threads met, want 15; %d registrations open", len(*all), len(d.registry.open))
	}
	// Those that nobody completes are given up, however the count is set.
	for k := range 200 {
		atomic.StoreUint64(m.u64(HdrRegistered), uint64(k%2)<<40+uint64(k%3))
		mustRound(t, d)
		if len(d.registry.open) > RegistrySize {
			t.Fatalf("%d registrations are open", len(d.registry.open))
		}
	}
}
