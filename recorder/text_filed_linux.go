package recorder

import (
	"bytes"

	"github.com/callreel/callreel/process"
)

// A library can go and come back, or one like it, at the same place, between the reading of its pages and the stop in which they are
// written. To read them again in that stop takes half of it in a program most of whose code is in a library that was loaded by dlopen, as
// Firefox's is. It isn't needed where the bytes are those of the mapped file: that is open here all the time, so no other file can have its
// device and inode, and whatever is mapped there then, if it is mapped from that place of that file, has these bytes.

// markFiled notes of which pages of images that may be unloaded one side is what the file has there. maps are the mappings before they
// were read. A page that is written more than once is not marked: what is written first is not the file's.
func (s *session) markFiled(pages []page, maps []process.Mapping, side func(*page) []byte) {
	var im *image
	var m process.Mapping // of im
	var file []byte       // what it has for m
	for i := range pages {
		p := &pages[i]
		if im == nil || p.addr < m.Start || p.addr >= m.End {
			if im, m = s.textAt(p.addr, maps); im == nil {
				continue
			}
			var err error
			if file, err = im.fileBytes(m.Start-im.slide, m.Size()); err != nil {
				file = nil
			}
		}
		if off := p.addr - m.Start; !p.partly && off+pageSize <= uint64(len(file)) && bytes.Equal(file[off:][:pageSize], side(p)) {
			p.file = im
		}
	}
}

// textAt returns the image that may be unloaded and is mapped at addr, and the mapping of its text there; nil if there is none.
func (s *session) textAt(addr uint64, maps []process.Mapping) (*image, process.Mapping) {
	for _, im := range s.images {
		if !im.loose || addr < im.lo || addr >= im.hi {
			continue
		}
		for _, m := range im.text {
			if addr >= m.Start && addr < m.End && sameMapping(im.text, maps, addr) {
				return im, m
			}
		}
	}
	return nil, process.Mapping{}
}

// doubtful returns what says of which pages it is to be looked once more whether they are as they were when they were read.
func (s *session) doubtful() func(p *page) bool {
	steady := map[*image]bool{}
	var at *image // where the last one was
	return func(p *page) bool {
		if p.file == nil {
			if at == nil || p.addr < at.lo || p.addr >= at.hi {
				at = s.imageAt(p.addr)
			}
			return at == nil || at.loose
		}
		is, known := steady[p.file]
		if !known {
			is = p.file.object.Unchanged()
			steady[p.file] = is
		}
		return !is
	}
}
