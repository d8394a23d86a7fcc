package ring

import (
	"testing"
	"unsafe"
)

// Memory is where huge pages of the file can be huge pages of the mapping, and populating it changes nothing that is there.
func TestPopulatingChangesNothing(t *testing.T) {
	for name, m := range map[string]*Memory{"large": newMemory(t, 128), "divided": dividedMemory(t, 128), "less than a huge page": newMemory(t, MinChunks)} {
		if at := uintptr(unsafe.Pointer(unsafe.SliceData(m.mem))); at%HugePage != 0 {
			t.Errorf("%s: mapped at %#x", name, at)
		}
		for i := range uint32(m.chunks) {
			m.events(i)[int(i)%m.capacity(i)].Time = uint64(i) + 1
		}
		if err := m.Populate(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i := range uint32(m.chunks) {
			for k, e := range m.events(i) {
				want := uint64(0)
				if k == int(i)%m.capacity(i) {
					want = uint64(i) + 1
				}
				if e.Time != want || e.Word != 0 || e.SP != 0 {
					t.Fatalf("%s: event %d of chunk %d is %+v", name, k, i, e)
				}
			}
		}
	}
}

// Rings in overwrite mode are laid out when they are populated, if that is to be done later.
func TestRingsAreLaidOutLater(t *testing.T) {
	m := memoryOf(t, Setup{Chunks: 64, Overwrite: true, Later: true, TicksPerSecond: 1e9})
	last := m.chunk(uint32(m.chunks-1)) + ChunkState
	if n := *m.u32(last); n != 0 {
		t.Errorf("a chunk is laid out already: %d", n)
	}
	if err := m.Populate(); err != nil {
		t.Fatal(err)
	}
	if NewSnapshotter(m).Frozen() {
		t.Error("threads may take no chunks")
	}
	for i := range uint32(m.chunks) {
		if *m.u32(m.chunk(i) + ChunkState) == 0 && int(i) >= m.reserved {
			t.Fatalf("chunk %d isn't laid out", i)
		}
	}
}
