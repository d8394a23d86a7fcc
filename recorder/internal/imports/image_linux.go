package imports

import (
	"cmp"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/linkmap"
	"github.com/callreel/callreel/recorder/internal/mapped"
)

// Image is a file as the process has it mapped.
type Image struct {
	Path, Module string
	Object       *object.Image
	Slide        uint64
	Lo, Hi       uint64 // addresses it occupies

	dev, inode uint64
	order      int  // its place in the loader's list; those that aren't there come last
	listed     bool // it is in the loader's list
	startup    bool // it was loaded when the program was started
	plt        []object.Range
	defs       map[string][]definition
	closure    []*Image        // itself, and what it needs, breadth first; nil until it is asked for
	functions  []object.Symbol // by address; nil until they are asked for
	named      bool
}

// definition is a symbol that other images may be bound to.
type definition struct {
	addr    uint64 // link address
	version string
	kind    object.Kind
}

// Process is what is known of a process's images, as they were when it was read.
type Process struct {
	Images []*Image // in the order in which the loader searches them, as far as that is known

	p    *process.Process
	maps []process.Mapping
	name map[string]*Image // by file name and by the name that a library gives itself
}

// audited says whether others may decide what the loader binds (LD_AUDIT), by the environment that the program was started with.
func (r *Process) audited() bool {
	for _, name := range []string{"LD_AUDIT", "LD_PROFILE"} {
		if _, is := process.Getenv(r.p.Pid(), name); is {
			return true
		}
	}
	return false
}

// maxImages bounds how many images are looked at: a process may map any number of files.
const maxImages = 1 << 13

// Read opens the files of a process's images. They stay open until Close.
func Read(p *process.Process, memory *object.Allowance) (*Process, error) {
	maps, err := p.Maps()
	if err != nil {
		return nil, err
	}
	r := &Process{p: p, maps: maps, name: map[string]*Image{}}
	type file struct{ dev, inode uint64 }
	seen := map[file]bool{}
	for i := range maps {
		m := &maps[i]
		if !mapped.IsCode(m) || seen[file{m.Dev, m.Inode}] || len(r.Images) >= maxImages {
			continue
		}
		seen[file{m.Dev, m.Inode}] = true
		r.open(m, memory)
	}
	r.sort()
	return r, nil
}

// Close closes the files.
func (r *Process) Close() {
	closed := map[*object.Image]bool{}
	for _, im := range r.Images {
		if !closed[im.Object] {
			im.Object.Close()
			closed[im.Object] = true
		}
	}
}

// native is the processor whose images the process has, which is ours.
func native() object.Arch {
	if runtime.GOARCH == "arm64" {
		return object.ARM64
	}
	return object.AMD64
}

// open adds the images of a file: it may be mapped more than once (dlmopen). What can't be read as an image is none.
func (r *Process) open(m *process.Mapping, memory *object.Allowance) {
	path, err := r.p.ExeFile(*m)
	if err != nil {
		return
	}
	o, err := object.Opener{Memory: memory}.Open(path)
	if err != nil || o.Format != object.ELF || o.Arch != native() || o.Class != object.Class64 {
		if err == nil {
			o.Close()
		}
		return
	}
	defs := definitions(o)
	added := false
	for _, slide := range mapped.Slides(o, m, r.maps) {
		im := &Image{Path: m.Path, Module: filepath.Base(m.Path), Object: o, Slide: slide, dev: m.Dev, inode: m.Inode, plt: o.PLTRanges(), defs: defs}
		for _, s := range o.Segments() {
			if s.Type != object.SegmentLoad || s.MemSize == 0 || s.Addr+s.MemSize < s.Addr {
				continue
			}
			if im.Hi == 0 {
				im.Lo = s.Addr + slide
			}
			im.Lo, im.Hi = min(im.Lo, s.Addr+slide), max(im.Hi, s.Addr+s.MemSize+slide)
		}
		if im.Hi > im.Lo {
			r.Images = append(r.Images, im)
			added = true
		}
	}
	if !added {
		o.Close()
	}
}

// definitions are the symbols of an image that others may be bound to.
func definitions(o *object.Image) map[string][]definition {
	const (
		cost = 128 // bytes each
		most = 1024
	)
	all, n := map[string][]definition{}, 0
	// What comes before damage is worth having.
	_ = o.VisitSymbols(func(s *object.Symbol) bool {
		if s.Source == object.Dynsym && s.Binding != object.Local && s.Kind != object.TLS && (s.Defined() || s.Addr != 0) {
			d := definition{s.Addr, s.Version, s.Kind}
			if !s.Defined() {
				d.kind = canonical
			}
			if n++; n%most == 1 && o.Take(cost*most, "a table of so many symbols") != nil {
				return false
			}
			all[s.Name] = append(all[s.Name], d)
		}
		return true
	})
	return all
}

// canonical is the kind of a program's PLT entry that stands for a function of another image wherever its address is taken (System V AMD64 ABI
// §4.4.2, function addresses): an undefined symbol with a value.
const canonical object.Kind = 0xFF

// sort puts the images in the order of the loader's list, and finds those that were there when the program was started.
func (r *Process) sort() {
	for _, im := range r.Images {
		im.order = 1 << 30
	}
	for i, e := range linkmap.Entries(r.p) {
		for _, im := range r.Images {
			if im.Slide == e.Slide && e.Dynamic >= im.Lo && e.Dynamic < im.Hi && !im.listed {
				im.order, im.listed = i, true
			}
		}
	}
	slices.SortStableFunc(r.Images, func(a, b *Image) int { return cmp.Compare(a.order, b.order) })
	for _, im := range r.Images {
		for _, name := range []string{im.Object.SoName(), im.Module} {
			if name != "" && r.name[name] == nil {
				r.name[name] = im
			}
		}
	}
	if len(r.Images) == 0 || !r.Images[0].listed {
		return
	}
	// What the program and its preloaded libraries need stands in front of what was loaded later.
	last := 0
	for i := 0; i <= last && i < len(r.Images); i++ {
		for _, d := range r.closureOf(r.Images[i]) {
			if k := slices.Index(r.Images, d); d.listed {
				last = max(last, k)
			}
		}
	}
	for _, im := range r.Images[:last+1] {
		im.startup = im.listed
	}
}

// closureOf is an image and what it needs, breadth first, as the loader searches them.
func (r *Process) closureOf(im *Image) []*Image {
	if im.closure != nil {
		return im.closure
	}
	list := []*Image{im}
	for i := 0; i < len(list); i++ {
		for _, name := range list[i].Object.Dependencies() {
			if d := r.name[filepath.Base(name)]; d != nil && !slices.Contains(list, d) {
				list = append(list, d)
			}
		}
	}
	im.closure = list
	return list
}

// imageAt is the image at an address, nil if there is none.
func (r *Process) imageAt(addr uint64) *Image {
	m := process.FindMapping(r.maps, addr)
	if m == nil {
		return nil
	}
	for _, im := range r.Images {
		if addr >= im.Lo && addr < im.Hi && m.Dev == im.dev && m.Inode == im.inode {
			return im
		}
	}
	return nil
}
