package target

import (
	"bytes"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/text"
)

// A library can go and come back, or one like it, at the same place, between the reading of its pages and the stop in which they are
// written. To read them again in that stop takes half of it in a program most of whose code is in a library that was loaded by dlopen, as
// Firefox's is. It isn't needed where the bytes are those of the mapped file: that is open here all the time, so no other file can have its
// device and inode, and whatever is mapped there then, if it is mapped from that place of that file, has these bytes.

// markFiled notes of which pages of images that may be unloaded one side is what the file has there. maps are the mappings before they
// were read. A page that is written more than once is not marked: what is written first is not the file's.
func (s *Target) markFiled(pages []text.Page, maps []process.Mapping, side func(*text.Page) []byte) {
	var im *mapped.Image
	var m process.Mapping // of im
	var file []byte       // what it has for m
	for i := range pages {
		p := &pages[i]
		if im == nil || p.Addr < m.Start || p.Addr >= m.End {
			if im, m = s.textAt(p.Addr, maps); im == nil {
				continue
			}
			var err error
			if file, err = im.FileBytes(m.Start-im.Slide, m.Size()); err != nil {
				file = nil
			}
		}
		if off := p.Addr - m.Start; !p.Partly && off+text.PageSize <= uint64(len(file)) && bytes.Equal(file[off:][:text.PageSize], side(p)) {
			p.File = im.Object
		}
	}
}

// textAt returns the image that may be unloaded and is mapped at addr, and the mapping of its text there; nil if there is none.
func (s *Target) textAt(addr uint64, maps []process.Mapping) (*mapped.Image, process.Mapping) {
	for _, im := range s.Images {
		if !im.Unloadable || addr < im.Lo || addr >= im.Hi {
			continue
		}
		for _, m := range im.Text {
			if addr >= m.Start && addr < m.End && process.SameMapping(im.Text, maps, addr) {
				return im, m
			}
		}
	}
	return nil, process.Mapping{}
}

// doubtful returns what says of which pages it is to be looked once more whether they are as they were when they were read.
func (s *Target) doubtful() func(p *text.Page) bool {
	steady := map[any]bool{}
	var at *mapped.Image // where the last one was
	return func(p *text.Page) bool {
		if p.File == nil {
			if at == nil || p.Addr < at.Lo || p.Addr >= at.Hi {
				at = s.imageAt(p.Addr)
			}
			return at == nil || at.Unloadable
		}
		is, known := steady[p.File]
		if !known {
			is = p.File.Unchanged()
			steady[p.File] = is
		}
		return !is
	}
}

// unloadable says whether the image at addr may be unloaded while the process runs: it isn't the program, nor one of the
// libraries that the program needs, nor one that they need.
func (s *Target) unloadable(addr uint64) bool {
	im := s.imageAt(addr)
	return im == nil || im.Unloadable
}

// imageAt is the first image that occupies addr, nil if none does.
func (s *Target) imageAt(addr uint64) *mapped.Image {
	for _, im := range s.Images {
		if addr >= im.Lo && addr < im.Hi {
			return im
		}
	}
	return nil
}
