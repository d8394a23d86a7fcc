//go:build amd64 || arm64

package step

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
)

// imageKey tells images apart: a file may be mapped again elsewhere.
type imageKey struct{ dev, inode, slide uint64 }

// images are the files that are mapped as code, and the memory around them.
type images struct {
	p      *process.Process
	memory *object.Allowance
	maps   []process.Mapping
	loaded map[imageKey]*image
	texts  []text             // sorted by start
	opened map[imageKey]error // slide 0: files that cannot be used
}

// text is one executable mapping of an image.
type text struct {
	start, end uint64
	image      *image
}

// scan reads the maps and returns the images that have come and gone since the last time. Files that cannot be read are
// told once.
func (l *images) scan() (fresh, gone []*image, problems []error, err error) {
	if l.maps, err = l.p.Maps(); err != nil {
		return nil, nil, nil, err
	}
	l.texts = l.texts[:0]
	here := map[*image]bool{}
	for _, m := range l.maps {
		if m.Perm&process.PermExec == 0 || m.Inode == 0 {
			continue
		}
		im, isNew, err := l.imageOf(m)
		if err != nil {
			problems = append(problems, err)
		}
		if im == nil {
			continue
		}
		if isNew {
			fresh = append(fresh, im)
		}
		here[im] = true
		l.texts = append(l.texts, text{m.Start, m.End, im})
	}
	for key, im := range l.loaded {
		if !here[im] {
			gone = append(gone, im)
			delete(l.loaded, key)
		}
	}
	return fresh, gone, problems, nil
}

// imageOf returns the image that a mapping belongs to, nil for files that cannot be used.
func (l *images) imageOf(m process.Mapping) (im *image, isNew bool, err error) {
	file := imageKey{m.Dev, m.Inode, 0}
	if _, bad := l.opened[file]; bad {
		return nil, false, nil
	}
	for key, im := range l.loaded {
		if key.dev == m.Dev && key.inode == m.Inode && slices.Contains(slides(im.object, m), im.slide) {
			return im, false, nil
		}
	}
	path, err := l.p.ExeFile(m)
	if err == nil {
		im, err = openImage(path, moduleOf(m.Path), l.memory)
	}
	if err != nil {
		l.opened[file] = err
		return nil, false, err
	}
	all := slides(im.object, m)
	if len(all) == 0 {
		im.object.Close()
		l.opened[file] = errNotASegment
		return nil, false, fmt.Errorf("cfi: %s: %w", m.Path, errNotASegment)
	}
	im.slide = all[0]
	l.loaded[imageKey{m.Dev, m.Inode, im.slide}] = im
	return im, true, nil
}

var errNotASegment = errors.New("what is mapped is no segment of the file's code")

// slides returns what load address minus link address may be, going by one executable mapping.
func slides(o *object.Image, m process.Mapping) []uint64 {
	page := uint64(os.Getpagesize())
	var all []uint64
	for _, s := range o.Segments() {
		if slide, ok := s.Slide(m.Start, m.Offset, page); ok && s.Perm&object.PermX != 0 {
			all = append(all, slide)
		}
	}
	return all
}

// at returns the image whose code an address is in, nil where there is none.
func (l *images) at(addr uint64) *image {
	k, found := slices.BinarySearchFunc(l.texts, addr, func(t text, addr uint64) int {
		switch {
		case t.end <= addr:
			return -1
		case t.start > addr:
			return 1
		}
		return 0
	})
	if !found {
		return nil
	}
	return l.texts[k].image
}

// span is a range of addresses.
type span struct{ low, high uint64 }

func (s span) contains(addr uint64) bool { return addr >= s.low && addr < s.high }

// stackAt returns the memory that a stack pointer is in. Stacks grow, and threads come with new ones: the maps are read
// again when they do not tell.
func (l *images) stackAt(sp uint64) span {
	for range 2 {
		for _, m := range l.maps {
			if m.Contains(sp) {
				return span{m.Start, m.End}
			}
		}
		maps, err := l.p.Maps()
		if err != nil {
			break
		}
		l.maps = maps
	}
	return span{}
}

// grown returns the memory that two addresses have in common, reading the maps again; empty where they have none.
func (l *images) grown(a, b uint64) span {
	if maps, err := l.p.Maps(); err == nil {
		l.maps = maps
	}
	if s := l.stackAt(a); s.contains(b) {
		return s
	}
	return span{}
}
