package pclntab

import (
	"github.com/callreel/callreel/object"
)

// The runtime finds the table, the text and the functions' data by runtime.firstmoduledata, whose symbol stripping takes away. It
// begins with pointers into the table, which nothing else does.

// Words of runtime.moduledata.
const (
	moduleNames = 1  // funcnametab's pointer
	moduleText  = 22 // since Go 1.18
	moduleWords = 48
)

// maxModuleAt bounds how far into a section runtime.firstmoduledata is looked for.
const maxModuleAt = 64 << 20

// findModule finds runtime.firstmoduledata, and notes what is wanted of it. Without it there are no inlined calls.
func (t *Table) findModule(table uint64) {
	for _, name := range []string{".go.module", ".noptrdata", ".data", ".data.rel.ro", "__go_module", "__noptrdata", "__data"} {
		s := t.image.Section(name)
		if s == nil {
			continue
		}
		if data, err := t.image.ReadAddr(s.Addr, min(s.Size, maxModuleAt)); err == nil && t.moduleIn(s, data, table) {
			return
		}
	}
}

// moduleIn looks for it in a section.
func (t *Table) moduleIn(s *object.Section, data []byte, table uint64) bool {
	names := table + uint64(len(t.data)-len(t.names))
	at := func(k uint64) uint64 {
		if t.ptr == 4 {
			return uint64(t.order.Uint32(data[k:]))
		}
		return t.order.Uint64(data[k:])
	}
	size := uint64(len(data))
	for k := uint64(0); k+moduleWords*t.ptr <= size; k += t.ptr {
		if at(k) == table && at(k+moduleNames*t.ptr) == names {
			return t.readModule(func(word uint64) uint64 { return at(k + word*t.ptr) })
		}
	}
	if t.image.Type == object.Executable || t.image.Format == object.MachO {
		return false
	}
	return t.relocatedModule(s, table, names)
}

// relocatedModule looks for it among what the loader writes: in a position-independent program the file needn't hold the pointers.
func (t *Table) relocatedModule(s *object.Section, table, names uint64) bool {
	if t.image.Take(s.Size/2, "relocations of a Go program") != nil {
		return false
	}
	places, begin := map[uint64]uint64{}, uint64(0)
	_ = t.image.RelativeTargets(func(place, target uint64) { // what can be read of them is good
		if place >= s.Addr && place < s.Addr+s.Size {
			places[place] = target
			if target == table && begin == 0 {
				begin = place
			}
		}
	})
	if begin == 0 || places[begin+moduleNames*t.ptr] != names {
		return false
	}
	return t.readModule(func(word uint64) uint64 { return places[begin+word*t.ptr] })
}

// readModule reads the fields, and says whether they make sense.
func (t *Table) readModule(word func(uint64) uint64) bool {
	if text := word(moduleText); text != 0 && t.image.SectionAt(text) != nil {
		t.text = text
	}
	// gofunc is behind rodata. Its place has changed from version to version, but what it leads to tells.
	for k := uint64(moduleText + 14); k < moduleWords; k++ {
		if addr := word(k); addr != 0 && t.leadsToTrees(addr) {
			t.data0 = addr
			break
		}
	}
	return true
}

// leadsToTrees says whether inlined calls of the first functions that have any make sense if offsets are from addr. A few needn't: a
// function that was inlined may be one without code, whose name the linker leaves out.
func (t *Table) leadsToTrees(addr uint64) bool {
	const (
		enough = 100
		most   = 4096
	)
	good, bad := 0, 0
	for k := 0; k < t.n && k < most && good+bad < enough; k++ {
		f, err := t.Func(k)
		if err != nil {
			return false
		}
		off, ok := t.funcdata(f, inlinedTree)
		if !ok {
			continue
		}
		c, ok := t.inlinedAt(addr+uint64(off), f)
		if !ok {
			return false
		}
		at := uint64(c.Name)
		if at > 0 && at < uint64(len(t.names)) && t.names[at-1] == 0 && t.names[at] != 0 && c.Site >= f.Start && c.Site < f.End {
			good++
		} else {
			bad++
		}
	}
	return good > 9*bad
}
