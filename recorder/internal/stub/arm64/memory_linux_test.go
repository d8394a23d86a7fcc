package arm64

import (
	"encoding/binary"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// testMemory is ring memory that a child maps as well.
type testMemory struct {
	mem  *ring.Memory
	file *os.File
	raw  []byte // the header and the slots
	size uint64
}

func newTestMemory(t testing.TB, chunks int, more uint64, overwrite, divide bool) *testMemory {
	t.Helper()
	fd, err := unix.MemfdCreate(ring.MemfdName, unix.MFD_CLOEXEC)
	realtest.NeedThat(t, "memfd_create", err)
	m := &testMemory{file: os.NewFile(uintptr(fd), "ring"), size: ring.Size(chunks) + more}
	t.Cleanup(func() { m.file.Close() })
	if err := unix.Ftruncate(fd, int64(m.size)); err != nil {
		t.Fatal(err)
	}
	if m.mem, err = ring.Map(fd, m.size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.mem.Close() })
	if m.raw, err = unix.Mmap(fd, 0, ring.ChunksOff, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(m.raw) })
	m.mem.SetBase(testRing)
	if err := m.mem.Init(ring.Setup{Chunks: chunks, TicksPerSecond: 3e9, Overwrite: overwrite, Divide: divide}); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *testMemory) setHeader(off int, v uint64) { binary.LittleEndian.PutUint64(m.raw[off:], v) }
func (m *testMemory) header(off int) uint64       { return binary.LittleEndian.Uint64(m.raw[off:]) }
