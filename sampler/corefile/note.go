package corefile

import (
	"bytes"

	"github.com/callreel/callreel/object"
)

// The notes that are read (include/uapi/linux/elf.h), all by the owner "CORE".
const (
	noteStatus  = 1
	noteProcess = 3
	noteAuxv    = 6
	noteSiginfo = 0x53494749
	noteFile    = 0x46494c45
)

// noteAlign is the alignment of names and descriptions. Kernels use 4 for 64-bit
// cores as well, against the gABI.
const noteAlign = 4

// notes reads the segments of notes.
func (f *File) notes() {
	size := f.image.Size()
	budget := size // segments that overlap must not cost more than the file is long
	for k, s := range f.image.Segments() {
		if s.Type != object.SegmentNote {
			continue
		}
		from := min(s.Off, size)
		n := s.FileSize
		if have := size - from; n > have {
			f.problem("notes in segment %d: cut off after %d of %d bytes", k, have, n)
			n = have
		}
		if n > budget {
			f.problem("notes in segment %d: overlap others", k)
			return
		}
		budget -= n
		data, err := f.image.Bytes(from, n)
		if err != nil {
			f.problem("notes in segment %d: %w", k, err)
			return
		}
		f.noteSegment(data, from)
	}
}

// noteSegment reads notes one after the other; a size that does not fit ends it.
func (f *File) noteSegment(data []byte, offset uint64) {
	o := f.image.ByteOrder
	at := uint64(0)
	for uint64(len(data))-at >= 12 {
		nameSize, descSize, kind := uint64(o.Uint32(data[at:])), uint64(o.Uint32(data[at+4:])), o.Uint32(data[at+8:])
		name := at + 12
		desc := name + alignUp(nameSize)
		end := desc + descSize
		if end > uint64(len(data)) {
			f.problem("note at offset %#x: %d bytes of description do not fit", offset+at, descSize)
			return
		}
		if string(bytes.TrimRight(data[name:name+nameSize], "\x00")) == "CORE" {
			f.note(kind, data[desc:end], offset+at)
		}
		at = min(alignUp(end), uint64(len(data)))
	}
}

func alignUp(n uint64) uint64 { return (n + noteAlign - 1) &^ (noteAlign - 1) }

func (f *File) note(kind uint32, desc []byte, offset uint64) {
	switch kind {
	case noteStatus:
		f.threadNote(desc, offset)
	case noteProcess:
		f.processNote(desc, offset)
	case noteAuxv:
		f.auxvNote(desc)
	case noteSiginfo:
		f.siginfoNote(desc)
	case noteFile:
		f.fileNote(desc, offset)
	}
}

// word reads an address at an offset that has been checked.
func (f *File) word(b []byte) uint64 {
	if f.image.Class == object.Class32 {
		return uint64(f.image.ByteOrder.Uint32(b))
	}
	return f.image.ByteOrder.Uint64(b)
}

func (f *File) wordSize() uint64 { return uint64(f.image.Class.AddrSize()) }

// siginfoNote reads siginfo_t: three numbers, and for faults their address. Kernels write one
// behind each thread's status, gcore one for the process.
func (f *File) siginfoNote(desc []byte) {
	const addr = 16 // 12 with 32 bits
	if len(f.Threads) == 0 || len(desc) < addr+8 {
		return
	}
	t, at := &f.Threads[len(f.Threads)-1], addr
	if f.image.Class == object.Class32 {
		at = 12
	}
	t.Info = Siginfo{Known: true, Signal: int(int32(f.image.ByteOrder.Uint32(desc))), Code: int(int32(f.image.ByteOrder.Uint32(desc[8:]))), Addr: f.word(desc[at:])}
}

// auxvNote reads the auxiliary vector.
func (f *File) auxvNote(desc []byte) {
	size := int(f.wordSize())
	for ; len(desc) >= 2*size; desc = desc[2*size:] {
		value := f.word(desc[size:])
		switch f.word(desc) {
		case 3:
			f.Auxv.Phdr = value
		case 6:
			if value >= object.MinPageSize && value <= object.MaxPageSize && value&(value-1) == 0 {
				f.Auxv.PageSize = value
			}
		case 9:
			f.Auxv.Entry = value
		case 33:
			f.Auxv.VDSO = value
		}
	}
}

// processNote reads struct elf_prpsinfo: state and flags, IDs, then the name of 16
// bytes and 80 bytes of the command line.
func (f *File) processNote(desc []byte, offset uint64) {
	const nameSize, argsSize = 16, 80
	if len(desc) < nameSize+argsSize+16 {
		f.problem("note at offset %#x: NT_PRPSINFO of %d bytes", offset, len(desc))
		return
	}
	name := len(desc) - argsSize - nameSize
	// pid, ppid, pgrp and sid stand right before the name in all layouts.
	f.Process.PID = int(int32(f.image.ByteOrder.Uint32(desc[name-16:])))
	f.Process.Name = text(desc[name : name+nameSize])
	f.Process.Command = text(desc[name+nameSize:])
}

// text is what stands before the first NUL.
func text(b []byte) string {
	if k := bytes.IndexByte(b, 0); k >= 0 {
		b = b[:k]
	}
	return string(bytes.TrimRight(b, " "))
}
