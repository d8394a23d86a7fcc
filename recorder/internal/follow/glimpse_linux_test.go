package follow

import (
	"encoding/binary"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// A glimpse of this process, in whose memory stands what the rings and text would be.
func TestAGlimpseTellsProbesFromText(t *testing.T) {
	const sites = 3*sitesAtOnce + 7
	mem, err := unix.Mmap(-1, 0, 1<<16, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(mem) })
	base := uint64(uintptr(unsafe.Pointer(&mem[0])))
	binary.LittleEndian.PutUint64(mem, ring.Magic)
	g := glimpse{rings: base}
	for i := range sites {
		at := 64 + 8*i
		copy(mem[at:], []byte{byte(i), 2, 3, 4})
		g.sites = append(g.sites, stub.NewPatch(base+uint64(at), []byte{byte(i), 2, 3, 4}, []byte{9, 9, 9, 9}))
		if i%500 == 0 { // of a library that is gone
			g.sites = append(g.sites, stub.NewPatch(uint64(8+i), []byte{1, 2, 3, 4}, []byte{9, 9, 9, 9}))
		}
	}
	want := func(what string, pid int, probed, known bool) {
		t.Helper()
		if p, k := g.of(pid); p != probed || k != known {
			t.Errorf("%s: probed %v, known %v", what, p, k)
		}
	}
	own := os.Getpid()
	want("as the files have it", own, false, true)
	for _, i := range []int{0, sitesAtOnce, sites - 1} {
		mem[64+8*i+1] = 9
		want("with a probe", own, true, true)
		mem[64+8*i+1] = 2
	}
	want("of no process", 1<<30, false, false)
	mem[0]++
	want("without the rings", own, false, false)
}
