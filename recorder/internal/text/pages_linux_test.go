package text

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// ownMemory is this process's memory.
type ownMemory struct{ *os.File }

func (m ownMemory) ReadAt(buf []byte, addr uint64) (int, error) {
	return m.File.ReadAt(buf, int64(addr))
}

func (m ownMemory) WriteAt(buf []byte, addr uint64) (int, error) {
	return m.File.WriteAt(buf, int64(addr))
}

// mapPages maps n pages, and returns them and their address.
func mapPages(t *testing.T, n int) (ownMemory, []byte, uint64) {
	t.Helper()
	mem, err := unix.Mmap(-1, 0, n*PageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(unix.Munmap(mem), f.Close()); err != nil {
			t.Error(err)
		}
	})
	return ownMemory{f}, mem, uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))
}

// Pages are compared with what was read before, but only where libraries may
// go; one that differs takes the other pages of its mapping along.
func TestPagesOfALibraryThatHasChangedAreLeftOut(t *testing.T) {
	mem, bytes, at := mapPages(t, 6)
	maps := []process.Mapping{
		{Start: at, End: at + 3*PageSize, Inode: 1, Path: "/lib/a.so"},
		{Start: at + 3*PageSize, End: at + 6*PageSize, Inode: 2, Path: "/lib/b.so"},
	}
	var pages []Page
	for i := range 6 {
		bytes[i*PageSize+i] = byte(i + 1)
		pages = append(pages, Page{Addr: at + uint64(i)*PageSize, Old: slices.Clone(bytes[i*PageSize:][:PageSize])})
	}
	always := func(uint64) bool { return true }
	wantOther := func(loose func(uint64) bool, starts ...uint64) map[uint64]bool {
		t.Helper()
		other, err := Changed(mem, pages, maps, func(p *Page) bool { return loose(p.Addr) })
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range starts {
			if !other[s] {
				t.Errorf("the mapping at %#x has changed, and was not noticed", s)
			}
		}
		if len(other) != len(starts) {
			t.Errorf("%d mappings have changed, want those at %#x", len(other), starts)
		}
		return other
	}
	if kept := Without(pages, maps, wantOther(always)); len(kept) != len(pages) {
		t.Errorf("%d pages of %d are left though nothing changed", len(kept), len(pages))
	}
	bytes[5*PageSize+PageSize-1] = 0xCC // the last byte of the last page
	kept := Without(slices.Clone(pages), maps, wantOther(always, at+3*PageSize))
	if len(kept) != 3 || kept[0].Addr != at || kept[2].Addr != at+2*PageSize {
		t.Errorf("left are %d pages", len(kept))
	}
	wantOther(func(addr uint64) bool { return addr < at+3*PageSize }) // b.so can't go
	// What is mapped nowhere any more is left out too.
	if kept := Without(pages, maps[:1], map[uint64]bool{at: true}); len(kept) != 0 {
		t.Errorf("%d pages are left", len(kept))
	}
}

func TestChangedSaysThatMemoryIsGone(t *testing.T) {
	mem, _, at := mapPages(t, 1)
	const nowhere = 0x1000 // below what may be mapped
	pages := []Page{{Addr: at, Old: make([]byte, PageSize)}, {Addr: nowhere, Old: make([]byte, PageSize)}}
	if _, err := Changed(mem, pages, nil, func(*Page) bool { return true }); err == nil {
		t.Error("no error")
	}
}

func TestSameMemoryKeepsThePagesOfTheSameFiles(t *testing.T) {
	before := []process.Mapping{{Start: 0x1000, End: 0x3000, Inode: 1, Path: "/a"}, {Start: 0x8000, End: 0x9000, Inode: 2, Path: "/b"}}
	now := []process.Mapping{before[0], {Start: 0x8000, End: 0x9000, Inode: 3, Path: "/c"}}
	pages := []Page{{Addr: 0x1000}, {Addr: 0x2000}, {Addr: 0x8000}}
	kept := SameMemory(pages, before, now)
	if len(kept) != 2 || kept[0].Addr != 0x1000 || kept[1].Addr != 0x2000 {
		t.Errorf("%#v", kept)
	}
	if pages[2].Addr != 0x8000 {
		t.Error("the caller's pages were changed")
	}
}

func TestPatchesAreDividedByPages(t *testing.T) {
	for _, perPage := range []int{1, 3, 700, 5000} {
		var all []stub.Patch
		for i := range 6 * leastPatches {
			all = append(all, stub.Patch{Addr: uint64(i/perPage)*PageSize + uint64(i%perPage)%PageSize})
		}
		slices.SortFunc(all, func(a, b stub.Patch) int { return cmp.Compare(a.Addr, b.Addr) })
		parts := partsByPage(all)
		if got := slices.Concat(parts...); !slices.EqualFunc(got, all, func(a, b stub.Patch) bool { return a.Addr == b.Addr }) {
			t.Errorf("%d patches of %d are in the parts, or in another order", len(got), len(all))
		}
		last := ^uint64(0)
		for _, part := range parts {
			if len(part) == 0 {
				continue
			}
			if part[0].Addr/PageSize == last {
				t.Errorf("page %#x is in two parts", last)
			}
			last = part[len(part)-1].Addr / PageSize
		}
	}
	if n := len(partsByPage(nil)); n != 1 {
		t.Errorf("%d parts of nothing", n)
	}
}
