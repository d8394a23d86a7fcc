// Package ringtest makes ring memory for tests, as a recorder and its target have it mapped.
package ringtest

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/recorder/internal/ring"
)

// Memory returns ring memory that is set up, and the bytes as a target sees them. Both go when the test ends.
func Memory(t testing.TB, set ring.Setup) (m *ring.Memory, mem []byte) {
	t.Helper()
	return MemoryWith(t, set, 0)
}

// MemoryWith is Memory with so many bytes behind the rings, as for ring.Predicates.
func MemoryWith(t testing.TB, set ring.Setup, more uint64) (m *ring.Memory, mem []byte) {
	t.Helper()
	fd, err := unix.MemfdCreate(ring.MemfdName, unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	size := ring.Size(set.Chunks) + more
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		t.Fatal(err)
	}
	if m, err = ring.Map(fd, size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := m.Init(set); err != nil {
		t.Fatal(err)
	}
	if mem, err = unix.Mmap(fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(mem); err != nil {
			t.Error(err)
		}
	})
	return m, mem
}
