package sampler

import (
	"errors"
	"path/filepath"
	"sync"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/unwind"
)

// An Image is one file of code that the process has loaded. Its file is opened when
// something is asked that only that can answer.
type Image struct {
	Path    string // as the process sees it; "[vdso]" for the kernel's own
	Load    uint64 // address of its first mapping
	Size    uint64 // bytes from Load to the end of its last mapping
	Offset  uint64 // in the file, of what is mapped at Load; mostly 0
	Deleted bool   // the file no longer has this name

	regions []region
	open    func(*Image) (*object.Image, error)

	once  sync.Once
	file  *object.Image
	err   error
	slide uint64
	cfi   *unwind.FileImage
	names nameTable
	stubs stubNames
	gos   goNames
}

// region is one mapping.
type region struct {
	start, end, offset uint64
	page               uint64 // the size of the pages that its kernel maps, 0 for the smallest
	exec, write        bool
	path               string
	special            string // "[vdso]", "[stack]"
	deleted            bool
	dev, inode         uint64
}

func (r *region) sameFile(o *region) bool {
	return r.path == o.path && r.dev == o.dev && r.inode == o.inode && r.special == o.special
}

// hasFile says whether an image may be behind the region.
func (r *region) hasFile() bool { return r.path != "" || r.special == "[vdso]" }

// ID is the image's build ID in lower-case hexadecimal, "" when it has none or cannot
// be read.
func (i *Image) ID() string {
	if i.ready() {
		return i.file.ID()
	}
	return ""
}

// Name is what people call the image: the base name of its file.
func (i *Image) Name() string { return filepath.Base(i.Path) }

// Err says why the image's file cannot be used, nil when it can.
func (i *Image) Err() error {
	i.ready()
	return i.err
}

// File is the open file, nil when it cannot be used. It belongs to the Capture.
func (i *Image) File() *object.Image {
	i.ready()
	return i.file
}

// Slide implements unwind.Image.
func (i *Image) Slide() uint64 {
	i.ready()
	return i.slide
}

// Entry implements unwind.Image.
func (i *Image) Entry() uint64 {
	if i.ready() {
		return i.file.Entry()
	}
	return 0
}

// Row implements unwind.Image.
func (i *Image) Row(m *cfi.Machine, pc uint64) (*cfi.Row, bool, error) {
	if i.ready() {
		return i.cfi.Row(m, pc)
	}
	return nil, false, nil
}

// ready opens the file; false when that fails.
func (i *Image) ready() bool {
	i.once.Do(func() {
		if i.file, i.err = i.open(i); i.err != nil {
			i.file = nil
			return
		}
		slide, ok := slideOf(i.file, i.regions)
		if !ok {
			i.err = errors.Join(errNoSegment, i.file.Close())
			i.file = nil
			return
		}
		i.slide, i.cfi = slide, unwind.NewFileImage(i.file, slide)
	})
	return i.file != nil
}

var errNoSegment = errors.New("no segment of the file is mapped as its headers say")

func (i *Image) close() error {
	if i.file == nil {
		return nil
	}
	return i.file.Close()
}

// slideOf returns load address minus link address. The region with the most bytes
// decides: pages between segments are mapped with both.
func slideOf(file *object.Image, regions []region) (uint64, bool) {
	sizes := map[uint64]uint64{}
	var most, slide uint64
	for _, r := range regions {
		for _, s := range file.Segments() {
			at, ok := s.Slide(r.start, r.offset, r.page)
			if !ok {
				continue
			}
			if sizes[at] += r.end - r.start; sizes[at] > most {
				most, slide = sizes[at], at
			}
		}
	}
	return slide, most > 0
}
