package recorder

import (
	"bytes"
	"errors"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/text"
)

// A library can go and come back, or one like it, at the same place, between the reading of its pages and the stop in which they are
// written. To read them again in that stop takes half of it in a program most of whose code is in a library that was loaded by dlopen, as
// Firefox's is. It isn't needed where the bytes are those of the mapped file: that is open here all the time, so no other file can have its
// device and inode, and whatever is mapped there then, if it is mapped from that place of that file, has these bytes.

// markFiled notes of which pages of images that may be unloaded one side is what the file has there. maps are the mappings before they
// were read. A page that is written more than once is not marked: what is written first is not the file's.
func (s *session) markFiled(pages []text.Page, maps []process.Mapping, side func(*text.Page) []byte) {
	var im *image
	var m process.Mapping // of im
	var file []byte       // what it has for m
	for i := range pages {
		p := &pages[i]
		if im == nil || p.Addr < m.Start || p.Addr >= m.End {
			if im, m = s.textAt(p.Addr, maps); im == nil {
				continue
			}
			var err error
			if file, err = im.fileBytes(m.Start-im.slide, m.Size()); err != nil {
				file = nil
			}
		}
		if off := p.Addr - m.Start; !p.Partly && off+pageSize <= uint64(len(file)) && bytes.Equal(file[off:][:pageSize], side(p)) {
			p.File = im.object
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
			if addr >= m.Start && addr < m.End && process.SameMapping(im.text, maps, addr) {
				return im, m
			}
		}
	}
	return nil, process.Mapping{}
}

// doubtful returns what says of which pages it is to be looked once more whether they are as they were when they were read.
func (s *session) doubtful() func(p *text.Page) bool {
	steady := map[any]bool{}
	var at *image // where the last one was
	return func(p *text.Page) bool {
		if p.File == nil {
			if at == nil || p.Addr < at.lo || p.Addr >= at.hi {
				at = s.imageAt(p.Addr)
			}
			return at == nil || at.loose
		}
		is, known := steady[p.File]
		if !known {
			is = p.File.Unchanged()
			steady[p.File] = is
		}
		return !is
	}
}

// verifyText says whether the executable pages of the images are, byte for byte, what their files say, but for what
// differed before we came.
//
// An image that isn't where it was any more has taken what was done to it along.
func (im *image) verifyText(p *process.Process) (bool, error) {
	now, err := p.Maps()
	if err != nil {
		return false, err
	}
	for _, m := range im.text {
		if !process.SameMapping(im.text, now, m.Start) {
			continue
		}
		file, err := im.fileBytes(m.Start-im.slide, m.Size())
		if err != nil {
			return false, err
		}
		same, err := holds(p, m.Start, file)
		if err == nil && same {
			continue
		}
		if err != nil && !errors.Is(err, process.ErrNoMapping) {
			return false, err
		}
		same, err = text.SameThere(p, m.Start, file, func(addr uint64) bool { return im.differed[addr] })
		if err != nil || !same {
			return false, err
		}
	}
	return true, nil
}
