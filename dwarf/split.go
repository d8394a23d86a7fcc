package dwarf

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/callreel/callreel/object"
)

// splits holds what has been opened of split units.
type splits struct {
	list atomic.Pointer[[]*source] // grows only; read without the lock

	mu    sync.Mutex
	halfs map[*unit]*splitHalf
	files map[*object.Image]*splitFile
}

// splitHalf is the other half of a skeleton unit.
type splitHalf struct {
	once sync.Once
	unit *unit
	err  error
}

// splitFile is a .dwo file or a .dwp package.
type splitFile struct {
	once     sync.Once
	sections source // of the whole file
	index    *packageIndex
	err      error
}

// at returns source k, nil when there is none.
func (s *splits) at(k uint64) *source {
	list := s.list.Load()
	if list == nil || k >= uint64(len(*list)) {
		return nil
	}
	return (*list)[k]
}

// add gives the source its index, and makes its strings known.
func (s *splits) add(from *source) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*source
	if old := s.list.Load(); old != nil {
		list = *old
	}
	if len(list) >= maxSplits {
		return fmt.Errorf("more than %d split units", maxSplits)
	}
	from.index = uint64(len(list))
	list = append(list, from)
	s.list.Store(&list)
	return nil
}

func (s *splits) half(u *unit) *splitHalf {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.halfs == nil {
		s.halfs = make(map[*unit]*splitHalf)
	}
	if s.halfs[u] == nil {
		s.halfs[u] = new(splitHalf)
	}
	return s.halfs[u]
}

func (s *splits) file(im *object.Image) *splitFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		s.files = make(map[*object.Image]*splitFile)
	}
	if s.files[im] == nil {
		s.files[im] = new(splitFile)
	}
	return s.files[im]
}

// splitOf returns the other half of a skeleton unit (DWARF 5 §3.1.3), opening it
// when it is asked for first.
func (d *Data) splitOf(u *unit, skeleton *root) (*unit, error) {
	half := d.splits.half(u)
	half.once.Do(func() {
		var err error
		if half.unit, err = d.openSplit(u, skeleton); err != nil {
			half.err = u.problem(int(u.first), "%w: %s: %w", ErrNoSplit, d.Bytes(skeleton.dwoName), err)
		}
	})
	return half.unit, half.err
}

func (d *Data) openSplit(u *unit, skeleton *root) (*unit, error) {
	if d.opts.Split == nil {
		return nil, errSplitUnwanted
	}
	im, err := d.opts.Split(string(d.Bytes(skeleton.dwoName)), string(d.Bytes(skeleton.compDir)), skeleton.dwoID)
	if err != nil {
		return nil, err
	}
	file := d.splits.file(im)
	file.once.Do(func() { file.load(im) })
	if file.err != nil {
		return nil, file.err
	}
	from := &source{
		name: file.sections.name, image: im, big: file.sections.big, role: roleSplit,
		info: file.sections.info, abbrev: file.sections.abbrev, str: file.sections.str,
		lineStr: file.sections.lineStr, strOffsets: file.sections.strOffsets, rnglists: file.sections.rnglists,
		// The other half's addresses stand in the linked file.
		addr: d.main.addr, addrBase: skeleton.addrBase,
		ranges: d.main.ranges, rangesBase: skeleton.gnuRangesBase,
	}
	if file.index != nil {
		if err := file.index.narrow(from, skeleton.dwoID); err != nil {
			return nil, err
		}
	}
	if from.info.data == nil {
		return nil, fmt.Errorf("%s: %w", from.name, ErrNoDWARF)
	}
	problems := from.findUnits()
	split := from.splitUnit(skeleton.dwoID)
	if split == nil {
		if len(problems) > 0 {
			return nil, problems[0]
		}
		return nil, fmt.Errorf("%s has no unit with ID %#x", from.name, skeleton.dwoID)
	}
	if split.shape.addr != u.shape.addr {
		return nil, fmt.Errorf("%s has addresses of %d bytes, want %d", from.name, split.shape.addr, u.shape.addr)
	}
	return split, d.splits.add(from)
}

// load reads the sections of the file and, if it is a package, its index.
func (f *splitFile) load(im *object.Image) {
	f.sections = source{name: im.Name(), image: im, big: bigEndian(im), role: roleSplit}
	var index section
	list := append(f.sections.sections(), wantedSection{".debug_cu_index", &index})
	_, problems, err := loadSections(context.Background(), im, list, 1)
	if err == nil && len(problems) > 0 {
		err = problems[0]
	}
	if err == nil && index.data != nil {
		f.index, err = f.sections.readPackageIndex(&index)
	}
	f.err = err
}

// splitUnit returns the compile unit with that ID. Version 4 keeps the ID in the
// first entry.
func (s *source) splitUnit(id uint64) *unit {
	for k := range s.units {
		u := &s.units[k]
		switch {
		case u.version >= 5 && u.kind == unitSplitCompile && u.id == id:
			return u
		case u.version < 5 && u.kind == unitCompile && u.kept().dwoID == id:
			return u
		}
	}
	return nil
}

// openSplit makes the other half the unit that is read; r.root is the skeleton's.
func (r *reader) openSplit(u *unit) bool {
	skeleton := r.root
	if !r.open(u) {
		return false
	}
	if !r.root.hasLow {
		r.root.lowPC, r.root.hasLow = skeleton.lowPC, skeleton.hasLow
	}
	return true
}
