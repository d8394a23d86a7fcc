package object

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"math"
	"strings"
)

// The load commands that are acted on (mach-o/loader.h, LC_SEGMENT and its kin);
// all others are passed over.
const (
	lcSegment          = 0x1
	lcSymtab           = 0x2
	lcUnixThread       = 0x5
	lcLoadDylib        = 0xc
	lcIDDylib          = 0xd
	lcLoadDylinker     = 0xe
	lcSegment64        = 0x19
	lcUUID             = 0x1b
	lcEncryptionInfo   = 0x21
	lcFunctionStarts   = 0x26
	lcEncryptionInfo64 = 0x2c
	lcRequired         = 0x80000000 // the loader must know the command
	lcLoadWeakDylib    = 0x18 | lcRequired
	lcReexportDylib    = 0x1f | lcRequired
	lcLoadUpwardDylib  = 0x23 | lcRequired
	lcMain             = 0x28 | lcRequired
)

// machFile is what only a Mach-O file has.
type machFile struct {
	*Image
	cpu, cpuSubtype uint32
	commands        []loadCommand
	uuid            []byte // a copy, nil when there is none
	symtab          machSymtab
	functionStarts  span
	encrypted       span
}

// span is a part of the file, not yet checked against its size.
type span struct{ off, size uint64 }

// loadCommand is one load command, whose place has been checked.
type loadCommand struct {
	kind uint32
	span
}

// readCommands walks the load commands, which follow the header.
func (m *machFile) readCommands(at uint64, count, size uint32) error {
	all, err := m.slice(at, uint64(size))
	if err != nil {
		return m.errorf("load commands at %#x: %#x bytes %w", at, size, err)
	}
	// Section 0 stands for no section, as in ELF, so that a symbol's section
	// number, which counts from 1, is its index.
	m.sections = []Section{{}}
	for k := range count {
		if len(all) < 8 {
			return m.errorf("load command %d of %d at %#x: beyond the %#x bytes of load commands", k, count, at, size)
		}
		c := loadCommand{m.ByteOrder.Uint32(all), span{at, uint64(m.ByteOrder.Uint32(all[4:]))}}
		if c.size < 8 || c.size > uint64(len(all)) {
			return m.errorf("load command %d (%#x) at %#x: impossible size %#x", k, c.kind, at, c.size)
		}
		if err := m.readCommand(c, all[:c.size]); err != nil {
			return err
		}
		m.commands = append(m.commands, c)
		all, at = all[c.size:], at+c.size
	}
	return nil
}

// readCommand takes what is needed from one command. Of commands that may stand
// once only the first counts.
func (m *machFile) readCommand(c loadCommand, b []byte) error {
	least := func(n int) error {
		if len(b) < n {
			return m.errorf("load command %#x at %#x: %d bytes, want %d", c.kind, c.off, len(b), n)
		}
		return nil
	}
	o := m.ByteOrder
	switch c.kind {
	case lcSegment, lcSegment64:
		return m.readSegment(c, b)
	case lcUUID:
		if err := least(24); err != nil {
			return err
		}
		// An all-zero UUID is what linkers leave that were told to make none.
		if m.uuid == nil && !bytes.Equal(b[8:24], make([]byte, 16)) {
			m.uuid = bytes.Clone(b[8:24])
		}
	case lcSymtab:
		if err := least(24); err != nil {
			return err
		}
		if m.symtab.count == 0 {
			m.symtab = machSymtab{off: o.Uint32(b[8:]), count: o.Uint32(b[12:]), strOff: o.Uint32(b[16:]), strSize: o.Uint32(b[20:])}
		}
	case lcFunctionStarts:
		if err := least(16); err != nil {
			return err
		}
		if m.functionStarts.size == 0 {
			m.functionStarts = span{uint64(o.Uint32(b[8:])), uint64(o.Uint32(b[12:]))}
		}
	case lcEncryptionInfo, lcEncryptionInfo64:
		if err := least(20); err != nil {
			return err
		}
		if o.Uint32(b[16:]) != 0 {
			m.encrypted = span{uint64(o.Uint32(b[8:])), uint64(o.Uint32(b[12:]))}
		}
	}
	return nil
}

// The sizes of segment_command, segment_command_64, section and section_64.
const (
	machSegmentSize32, machSegmentSize64 = 56, 72
	machSectionSize32, machSectionSize64 = 68, 80
)

// readSegment reads a segment and its sections.
func (m *machFile) readSegment(c loadCommand, b []byte) error {
	size, sectionSize := machSegmentSize64, uint64(machSectionSize64)
	if c.kind == lcSegment {
		size, sectionSize = machSegmentSize32, machSectionSize32
	}
	if len(b) < size {
		return m.errorf("segment command at %#x: %d bytes, want %d", c.off, len(b), size)
	}
	o := m.ByteOrder
	s := Segment{Name: fixedName(b[8:]), Type: SegmentLoad}
	if c.kind == lcSegment {
		s.Addr, s.MemSize = uint64(o.Uint32(b[24:])), uint64(o.Uint32(b[28:]))
		s.Off, s.FileSize = uint64(o.Uint32(b[32:])), uint64(o.Uint32(b[36:]))
	} else {
		s.Addr, s.MemSize = o.Uint64(b[24:]), o.Uint64(b[32:])
		s.Off, s.FileSize = o.Uint64(b[40:]), o.Uint64(b[48:])
	}
	tail := b[size-16:] // maxprot, initprot, nsects, flags
	s.Perm = machPerm(o.Uint32(tail[4:]))
	if s.Name == segmentDWARF {
		s.Type = SegmentNull
	}
	m.segments = append(m.segments, s)
	count := uint64(o.Uint32(tail[8:]))
	if count*sectionSize > uint64(len(b)-size) {
		return m.errorf("segment %s at %#x: %d sections of %d bytes reach beyond its %d bytes", s.Name, c.off, count, sectionSize, len(b))
	}
	for k := range count {
		m.sections = append(m.sections, m.section(b[uint64(size)+k*sectionSize:], &s, c.kind == lcSegment64))
	}
	return nil
}

// machPerm translates VM_PROT_READ, VM_PROT_WRITE and VM_PROT_EXECUTE.
func machPerm(prot uint32) Perm {
	var p Perm
	for bit, perm := range [...]Perm{PermR, PermW, PermX} {
		if prot>>bit&1 != 0 {
			p |= perm
		}
	}
	return p
}

// The section types (flags & 0xff) and attributes that matter (mach-o/loader.h,
// S_ZEROFILL and its kin).
const (
	machZeroFill      = 0x1
	machSymbolStubs   = 0x8
	machGBZeroFill    = 0xc
	machThreadLocal   = 0x11
	machThreadLocalZF = 0x12

	machAttrPureCode = 0x80000000
	machAttrSomeCode = 0x00000400
	machAttrDebug    = 0x02000000
)

// section translates one section header; b is long enough.
func (m *machFile) section(b []byte, in *Segment, wide bool) Section {
	o := m.ByteOrder
	s := Section{Name: fixedName(b), Segment: fixedName(b[machNameSize:]), Type: uint32(elf.SHT_PROGBITS)}
	tail := b[40:] // offset, align, reloff, nreloc, flags, reserved1, reserved2
	if wide {
		s.Addr, s.Size = o.Uint64(b[32:]), o.Uint64(b[40:])
		tail = b[48:]
	} else {
		s.Addr, s.Size = uint64(o.Uint32(b[32:])), uint64(o.Uint32(b[36:]))
	}
	s.Off, s.FileSize = m.sectionOffset(&s, in, o.Uint32(tail)), s.Size
	if shift := o.Uint32(tail[4:]); shift < 64 {
		s.Align = 1 << shift
	}
	flags := o.Uint32(tail[16:])
	kind := flags & 0xff
	if kind == machSymbolStubs {
		s.EntSize = uint64(o.Uint32(tail[24:]))
	}
	// A section at offset 0 would hold the header: in a dSYM it marks sections
	// whose bytes are in the program.
	if kind == machZeroFill || kind == machGBZeroFill || kind == machThreadLocalZF || s.Off == 0 {
		s.Type, s.Off, s.FileSize = uint32(elf.SHT_NOBITS), 0, 0
	}
	if flags&machAttrDebug == 0 && s.Segment != segmentDWARF && in.Type == SegmentLoad {
		s.Flags |= uint64(elf.SHF_ALLOC)
		if in.Perm&PermW != 0 && !(m.Type == Relocatable && s.Segment == segmentText) {
			s.Flags |= uint64(elf.SHF_WRITE)
		}
	}
	if flags&(machAttrPureCode|machAttrSomeCode) != 0 {
		s.Flags |= uint64(elf.SHF_EXECINSTR)
	}
	if kind == machThreadLocal || kind == machThreadLocalZF {
		s.Flags |= uint64(elf.SHF_TLS)
	}
	return s
}

// sectionOffset widens a section's offset, which has 32 bits in a 64-bit file too:
// in a dSYM of more than 4 GB it has wrapped, and the segment's offset tells.
func (m *machFile) sectionOffset(s *Section, in *Segment, off uint32) uint64 {
	if m.Class == Class64 && m.Image.size > math.MaxUint32 && s.Addr >= in.Addr {
		if wide := in.Off + (s.Addr - in.Addr); uint32(wide) == off && off != 0 {
			return wide
		}
	}
	return uint64(off)
}

// fixedName reads a name field, which has a NUL only when it is not full.
func fixedName(b []byte) string {
	name, _, _ := bytes.Cut(b[:machNameSize], []byte{0})
	return string(name)
}

// baseAddr is the address of __TEXT, or of the segment that holds the header.
func (m *machFile) baseAddr() uint64 {
	header := uint64(0)
	for k := len(m.segments) - 1; k >= 0; k-- {
		s := &m.segments[k]
		if s.Name == segmentText {
			return s.Addr
		}
		if s.Off == 0 && s.FileSize > 0 {
			header = s.Addr
		}
	}
	if m.Type == Relocatable {
		return 0
	}
	return header
}

// dependencies lists the libraries, those loaded weakly or upward too.
func (m *machFile) dependencies() []string {
	var names []string
	for _, c := range m.commands {
		switch c.kind {
		case lcLoadDylib, lcLoadWeakDylib, lcReexportDylib, lcLoadUpwardDylib:
			if name := m.commandName(c); name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// firstName returns the name in the first command of that kind, "" for none.
func (m *machFile) firstName(kind uint32) string {
	for _, c := range m.commands {
		if c.kind == kind {
			return m.commandName(c)
		}
	}
	return ""
}

// commandName reads the name of a library or loader, whose offset in the command
// follows the command's size (mach-o/loader.h, union lc_str).
func (m *machFile) commandName(c loadCommand) string {
	b, err := m.slice(c.off, c.size)
	if err != nil || len(b) < 12 {
		return ""
	}
	at := uint64(m.ByteOrder.Uint32(b[8:]))
	if at < 12 || at > uint64(len(b)) {
		return ""
	}
	name, _, _ := bytes.Cut(b[at:], []byte{0})
	return string(name)
}

// UUID is the ID of a Mach-O image as Apple's tools print it, in upper case with
// dashes: "4C4C44C0-5555-3144-A1B4-2AF1B5C2D3E4"; "" for an image without one and
// for ELF.
func (i *Image) UUID() string {
	if len(i.mach.uuid) != 16 {
		return ""
	}
	h := strings.ToUpper(hex.EncodeToString(i.mach.uuid))
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

// Encrypted says whether a part of the Mach-O image is encrypted, as programs from
// an application store are, and which file offsets (LC_ENCRYPTION_INFO). Code and
// tables read from there are noise.
func (i *Image) Encrypted() (off, size uint64, ok bool) {
	e := i.mach.encrypted
	return e.off, e.size, e.size > 0
}
