package sampler

import (
	"errors"
	"fmt"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/unwind"
)

// space is the target's address space: what is mapped where, and the images.
type space struct {
	regions []region // sorted, disjoint
	images  []*Image
	mapped  unwind.Map
	jit     *jitNames // nil where there is no process
}

// codeMap is what is mapped where, as a walk sees it: a file that is no image, as one that
// a JIT compiler writes its code into, is not behind any code.
type codeMap struct{ unwind.Map }

// code returns the space as a walk sees it.
func (s *space) code() codeMap { return codeMap{s.mapped} }

// Mapping implements unwind.Images.
func (c codeMap) Mapping(addr uint64) (unwind.Mapping, bool) {
	m, ok := c.Map.Mapping(addr)
	if im, isImage := m.Image.(*Image); isImage && m.Exec && !im.ready() {
		m.Image = nil
	}
	return m, ok
}

// newSpace groups regions into images. A loader maps one file in several pieces with
// rising offsets; a lower offset begins another copy of the file. Images that an older
// space has too are taken over with their open files.
func newSpace(regions []region, open func(*Image) (*object.Image, error), old *space) *space {
	s := &space{regions: regions}
	var current *Image
	var last *region
	s.mapped = make(unwind.Map, 0, len(regions))
	for k := range regions {
		r := &regions[k]
		m := unwind.Mapping{Start: r.start, End: r.end, Exec: r.exec, Write: r.write}
		if r.hasFile() && !isJITDump(r.path) {
			if current == nil || !r.sameFile(last) || r.offset < last.offset {
				current = &Image{Path: r.path, Load: r.start, Offset: r.offset, Deleted: r.deleted, open: open}
				if r.path == "" {
					current.Path = r.special
				}
				s.images = append(s.images, current)
			}
			current.regions = append(current.regions, *r)
			current.Size = r.end - current.Load
			last = r
			m.Image = current
		}
		s.mapped = append(s.mapped, m)
	}
	s.keepCode()
	if old != nil {
		s.takeOver(old)
	}
	return s
}

// keepCode drops files that are mapped for their data only.
func (s *space) keepCode() {
	kept := s.images[:0]
	for _, im := range s.images {
		code := false
		for _, r := range im.regions {
			code = code || r.exec
		}
		if code {
			kept = append(kept, im)
		}
	}
	s.images = kept
}

// takeOver replaces images by those of an older space that are the same.
func (s *space) takeOver(old *space) {
	known := map[uint64]*Image{}
	for _, im := range old.images {
		known[im.Load] = im
	}
	same := map[*Image]*Image{}
	for k, im := range s.images {
		if was := known[im.Load]; was != nil && was.Size == im.Size && was.regions[0].sameFile(&im.regions[0]) {
			s.images[k], same[im] = was, was
			delete(known, im.Load)
		}
	}
	for k := range s.mapped {
		if im, ok := s.mapped[k].Image.(*Image); ok && same[im] != nil {
			s.mapped[k].Image = same[im]
		}
	}
	s.jit = old.jit
	for _, im := range known {
		s.images = append(s.images, im) // to be closed with the rest; a frame may have it
	}
}

func (s *space) close() error {
	var errs []error
	s.jit.close()
	for _, im := range s.images {
		errs = append(errs, im.close())
	}
	return errors.Join(errs...)
}

// image returns the image whose code is at an address, nil when there is none.
func (s *space) image(addr uint64) *Image {
	if m, ok := s.mapped.Mapping(addr); ok {
		if im, ok := m.Image.(*Image); ok {
			return im
		}
	}
	return nil
}

// problems are those of images whose files could not be used though they were asked.
func (s *space) problems() []error {
	var out []error
	for _, im := range s.images {
		if im.err != nil {
			out = append(out, fmt.Errorf("%s: %w", im.Path, im.err))
		}
	}
	if err := s.jit.problem(); err != nil {
		out = append(out, err)
	}
	return out
}
