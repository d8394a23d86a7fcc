package unwind

import (
	"errors"
	"sync"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/object"
)

// FileImage is an Image over a file's call frame information: .eh_frame, found by
// its search table, and .debug_frame for what that leaves out; in Mach-O files compact
// unwind information, and what it leads to; in Go programs first the runtime's own
// table. Nothing is read until a walk asks. It may be used by several goroutines at once.
type FileImage struct {
	file  *object.Image
	slide uint64

	once    sync.Once
	tables  []*cfi.Table
	compact *cfi.Info // of a Mach-O file
	golang  *goFrames // of a Go program, nil for others
	err     error
}

// NewFileImage makes an Image of a file that is loaded at its link addresses plus
// slide. The file must stay open as long as the image is used.
func NewFileImage(file *object.Image, slide uint64) *FileImage {
	return &FileImage{file: file, slide: slide}
}

// Slide implements Image.
func (i *FileImage) Slide() uint64 { return i.slide }

// Entry implements Image.
func (i *FileImage) Entry() uint64 { return i.file.Entry() }

// Row implements Image.
func (i *FileImage) Row(m *cfi.Machine, pc uint64) (row *cfi.Row, signal bool, err error) {
	i.once.Do(i.open)
	if i.golang != nil {
		// Where there is CFI beside it, that knows nothing of functions that change stacks.
		if row := i.golang.row(pc); row != nil {
			return row, false, nil
		}
	}
	for _, t := range i.tables {
		if f, ok := t.Find(pc); ok {
			row, err = m.RowAt(f, pc)
			return row, f.CIE.SignalFrame, err
		}
	}
	if i.compact != nil {
		row, _, err = i.compact.RowAt(m, pc)
		if errors.Is(err, cfi.ErrNotDescribed) {
			return nil, false, nil
		}
	}
	return row, false, err
}

// Err says what could not be read of the file's call frame information. Code that
// the lost part describes is walked by the rules for code without any.
func (i *FileImage) Err() error {
	i.once.Do(i.open)
	return i.err
}

func (i *FileImage) open() {
	defer i.openGo()
	if i.file.Format == object.MachO {
		if i.compact, i.err = cfi.ReadImage(i.file); i.err != nil {
			i.compact = nil
		}
		return
	}
	opt := cfi.Options{ByteOrder: i.file.ByteOrder, AddrSize: i.file.Class.AddrSize(), Name: i.file.Name(), Take: i.file.Take}
	if s := i.file.Section(".text"); s != nil {
		opt.TextAddr = s.Addr
	}
	if s := i.file.Section(".got"); s != nil {
		opt.DataAddr = s.Addr
	}
	i.openEHFrame(opt)
	i.openDebugFrame(opt)
}

func (i *FileImage) openGo() {
	var err error
	if i.golang, err = openGo(i.file); i.err == nil {
		i.err = err
	}
}

func (i *FileImage) openEHFrame(opt cfi.Options) {
	frame, addr, err := i.file.EHFrame()
	if err != nil || len(frame) == 0 {
		i.err = err
		return
	}
	var t *cfi.Table
	if hdr, hdrAddr, hdrErr := i.file.EHFrameHdr(); hdrErr == nil && len(hdr) > 0 {
		t, err = cfi.OpenEHFrame(cfi.Section{Data: hdr, Addr: hdrAddr}, cfi.Section{Data: frame, Addr: addr}, opt)
	} else {
		t, err = cfi.ParseEHFrame(frame, addr, opt)
	}
	if err != nil {
		i.err = err
		return
	}
	i.tables = append(i.tables, t)
}

func (i *FileImage) openDebugFrame(opt cfi.Options) {
	s := i.file.Section(".debug_frame")
	if s == nil {
		return
	}
	data, err := i.file.SectionData(s)
	if err == nil {
		var t *cfi.Table
		if t, err = cfi.ParseDebugFrame(data, s.Addr, opt); err == nil {
			i.tables = append(i.tables, t)
		}
	}
	if i.err == nil {
		i.err = err
	}
}

// Name is the name that the file was opened under.
func (i *FileImage) Name() string { return i.file.Name() }
