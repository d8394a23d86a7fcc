package cfi

import (
	"errors"
	"fmt"

	"github.com/callreel/callreel/object"
)

var (
	// ErrNone is wrapped by the error for an image without call frame information.
	ErrNone = errors.New("no call frame information")
	// ErrNotLinked is wrapped by the error for an object file, in which the addresses
	// of functions are still to be filled in.
	ErrNotLinked = errors.New("addresses are not known before the file is linked")
	// ErrNotDescribed is wrapped by the error for an address that none describes.
	ErrNotDescribed = errors.New("not described by call frame information")
)

// Info is all call frame information of an image. Tables that the image has not
// are nil.
type Info struct {
	Registers  Registers
	EHFrame    *Table // .eh_frame, found through .eh_frame_hdr where there is one
	DebugFrame *Table
	Compact    *CompactTable // __unwind_info of Mach-O
}

// ReadImage opens an image's tables. The image must stay open while they are in
// use. The error wraps ErrNone when there are none, and ErrNotLinked for object files.
func ReadImage(im *object.Image) (*Info, error) {
	regs, ok := RegistersOf(im.Arch)
	if !ok {
		return nil, fmt.Errorf("cfi: %s: the registers of %s are not known", im.Name(), im.Arch)
	}
	if im.Type == object.Relocatable {
		return nil, fmt.Errorf("cfi: %s: %w", im.Name(), ErrNotLinked)
	}
	info := &Info{Registers: regs}
	opt := Options{ByteOrder: im.ByteOrder, AddrSize: im.Class.AddrSize(), Name: im.Name(), Take: im.Take}
	for _, read := range []func(*object.Image, Options) error{info.readEHFrame, info.readDebugFrame, info.readCompact} {
		if err := read(im, opt); err != nil {
			return nil, err
		}
	}
	if info.EHFrame == nil && info.DebugFrame == nil && info.Compact == nil {
		return nil, fmt.Errorf("cfi: %s: %w", im.Name(), ErrNone)
	}
	return info, nil
}

func (i *Info) readEHFrame(im *object.Image, opt Options) error {
	var hdr, frame Section
	var err error
	if frame.Data, frame.Addr, err = im.EHFrame(); err != nil || len(frame.Data) == 0 {
		return err
	}
	if hdr.Data, hdr.Addr, err = im.EHFrameHdr(); err != nil {
		hdr = Section{}
	}
	i.EHFrame, err = OpenEHFrame(hdr, frame, opt)
	return err
}

func (i *Info) readDebugFrame(im *object.Image, opt Options) error {
	for _, name := range []string{".debug_frame", ".zdebug_frame", "__debug_frame"} {
		s := im.Section(name)
		if s == nil {
			continue
		}
		data, err := im.SectionData(s)
		if err != nil || len(data) == 0 {
			return err
		}
		i.DebugFrame, err = ParseDebugFrame(data, 0, opt)
		return err
	}
	return nil
}

func (i *Info) readCompact(im *object.Image, opt Options) error {
	data, _, err := im.UnwindInfo()
	if err != nil || len(data) == 0 {
		return err
	}
	i.Compact, err = ParseUnwindInfo(data, CompactOptions{
		Arch: im.Arch, Base: im.BaseAddr(), Name: opt.Name, EHFrame: i.EHFrame, Code: im.ReadAddr,
	})
	return err
}

// RowAt returns the row of a link address and the section that it comes from. The
// tables are asked in the order in which unwinders do: compact unwind information,
// .eh_frame, .debug_frame. The row is valid until the machine is used again. The
// error wraps ErrNotDescribed when none describes the address.
func (i *Info) RowAt(m *Machine, pc uint64) (*Row, string, error) {
	if i.Compact != nil {
		row, section, err := i.compactRow(m, pc)
		if row != nil || err != nil {
			return row, section, err
		}
	}
	for _, t := range []*Table{i.EHFrame, i.DebugFrame} {
		if t == nil {
			continue
		}
		if f, ok := t.Find(pc); ok {
			row, err := m.RowAt(f, pc)
			return row, t.Section(), err
		}
	}
	return nil, "", fmt.Errorf("cfi: %#x: %w", pc, ErrNotDescribed)
}

// compactRow asks __unwind_info, which may lead on to __eh_frame.
func (i *Info) compactRow(m *Machine, pc uint64) (*Row, string, error) {
	e, ok, err := i.Compact.Find(pc)
	if err != nil || !ok {
		return nil, "", err
	}
	if _, escape := i.Compact.DWARF(&e); escape {
		f, err := i.Compact.FDE(&e)
		if err != nil {
			return nil, "", err
		}
		row, err := m.RowAt(f, pc)
		return row, "__eh_frame", err
	}
	row, err := i.Compact.Row(&e)
	return &row, "__unwind_info", err
}

// Tables lists the tables of FDEs that there are.
func (i *Info) Tables() []*Table {
	var list []*Table
	for _, t := range []*Table{i.EHFrame, i.DebugFrame} {
		if t != nil {
			list = append(list, t)
		}
	}
	return list
}
