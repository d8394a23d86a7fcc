package recorder

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/probe"
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
	mem, err := unix.Mmap(-1, 0, n*pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
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

func TestSameMapping(t *testing.T) {
	lib := process.Mapping{Start: 0x10000, End: 0x14000, Offset: 0x1000, Inode: 7, Dev: 1, Path: "/lib/a.so", Perm: process.PermRead | process.PermExec}
	change := func(f func(*process.Mapping)) process.Mapping {
		m := lib
		f(&m)
		return m
	}
	for name, c := range map[string]struct {
		now  []process.Mapping
		want bool
	}{
		"the same":              {[]process.Mapping{lib}, true},
		"gone":                  {nil, false},
		"another file":          {[]process.Mapping{change(func(m *process.Mapping) { m.Inode = 8 })}, false},
		"another device":        {[]process.Mapping{change(func(m *process.Mapping) { m.Dev = 2 })}, false},
		"another name":          {[]process.Mapping{change(func(m *process.Mapping) { m.Path = "/lib/b.so" })}, false},
		"another part of it":    {[]process.Mapping{change(func(m *process.Mapping) { m.Offset = 0x2000 })}, false},
		"no file":               {[]process.Mapping{change(func(m *process.Mapping) { m.Inode, m.Dev, m.Path, m.Offset = 0, 0, "", 0 })}, false},
		"more of it":            {[]process.Mapping{change(func(m *process.Mapping) { m.Start, m.Offset = 0xF000, 0 })}, true},
		"split":                 {[]process.Mapping{change(func(m *process.Mapping) { m.End = 0x13000 }), change(func(m *process.Mapping) { m.Start, m.Offset = 0x13000, 0x4000 })}, true},
		"other protection":      {[]process.Mapping{change(func(m *process.Mapping) { m.Perm = process.PermRead })}, true},
		"only beside the place": {[]process.Mapping{change(func(m *process.Mapping) { m.End = 0x12000 })}, false},
	} {
		if got := sameMapping([]process.Mapping{lib}, c.now, 0x12345); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if sameMapping(nil, []process.Mapping{lib}, 0x12345) {
		t.Error("what was not there before is the same")
	}
}

// Pages are compared with what was read before, but only where libraries may
// go; one that differs takes the other pages of its mapping along.
func TestPagesOfALibraryThatHasChangedAreLeftOut(t *testing.T) {
	mem, bytes, at := mapPages(t, 6)
	maps := []process.Mapping{
		{Start: at, End: at + 3*pageSize, Inode: 1, Path: "/lib/a.so"},
		{Start: at + 3*pageSize, End: at + 6*pageSize, Inode: 2, Path: "/lib/b.so"},
	}
	var pages []page
	for i := range 6 {
		bytes[i*pageSize+i] = byte(i + 1)
		pages = append(pages, page{addr: at + uint64(i)*pageSize, old: slices.Clone(bytes[i*pageSize:][:pageSize])})
	}
	always := func(uint64) bool { return true }
	wantOther := func(loose func(uint64) bool, starts ...uint64) map[uint64]bool {
		t.Helper()
		other, err := changed(mem, pages, maps, func(p *page) bool { return loose(p.addr) })
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
	if kept := without(pages, maps, wantOther(always)); len(kept) != len(pages) {
		t.Errorf("%d pages of %d are left though nothing changed", len(kept), len(pages))
	}
	bytes[5*pageSize+pageSize-1] = 0xCC // the last byte of the last page
	kept := without(slices.Clone(pages), maps, wantOther(always, at+3*pageSize))
	if len(kept) != 3 || kept[0].addr != at || kept[2].addr != at+2*pageSize {
		t.Errorf("left are %d pages", len(kept))
	}
	wantOther(func(addr uint64) bool { return addr < at+3*pageSize }) // b.so can't go
	// What is mapped nowhere any more is left out too.
	if kept := without(pages, maps[:1], map[uint64]bool{at: true}); len(kept) != 0 {
		t.Errorf("%d pages are left", len(kept))
	}
}

func TestChangedSaysThatMemoryIsGone(t *testing.T) {
	mem, _, at := mapPages(t, 1)
	const nowhere = 0x1000 // below what may be mapped
	pages := []page{{addr: at, old: make([]byte, pageSize)}, {addr: nowhere, old: make([]byte, pageSize)}}
	if _, err := changed(mem, pages, nil, func(*page) bool { return true }); err == nil {
		t.Error("no error")
	}
}

func TestSameMemoryKeepsThePagesOfTheSameFiles(t *testing.T) {
	before := []process.Mapping{{Start: 0x1000, End: 0x3000, Inode: 1, Path: "/a"}, {Start: 0x8000, End: 0x9000, Inode: 2, Path: "/b"}}
	now := []process.Mapping{before[0], {Start: 0x8000, End: 0x9000, Inode: 3, Path: "/c"}}
	pages := []page{{addr: 0x1000}, {addr: 0x2000}, {addr: 0x8000}}
	kept := sameMemory(pages, before, now)
	if len(kept) != 2 || kept[0].addr != 0x1000 || kept[1].addr != 0x2000 {
		t.Errorf("%#v", kept)
	}
	if pages[2].addr != 0x8000 {
		t.Error("the caller's pages were changed")
	}
}

func TestPatchesAreDividedByPages(t *testing.T) {
	for _, perPage := range []int{1, 3, 700, 5000} {
		var all []probe.Patch
		for i := range 6 * leastPatches {
			all = append(all, probe.Patch{Addr: uint64(i/perPage)*pageSize + uint64(i%perPage)%pageSize})
		}
		slices.SortFunc(all, func(a, b probe.Patch) int { return cmp.Compare(a.Addr, b.Addr) })
		parts := partsByPage(all)
		if got := slices.Concat(parts...); !slices.EqualFunc(got, all, func(a, b probe.Patch) bool { return a.Addr == b.Addr }) {
			t.Errorf("%d patches of %d are in the parts, or in another order", len(got), len(all))
		}
		last := ^uint64(0)
		for _, part := range parts {
			if len(part) == 0 {
				continue
			}
			if part[0].Addr/pageSize == last {
				t.Errorf("page %#x is in two parts", last)
			}
			last = part[len(part)-1].Addr / pageSize
		}
	}
	if n := len(partsByPage(nil)); n != 1 {
		t.Errorf("%d parts of nothing", n)
	}
}
