package sampler

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// jitDump reads what JIT compilers write for `perf inject` (tools/perf/Documentation/jitdump-specification.txt of Linux): a
// header, and records of code that was made, moved, and of more that has nothing to do with names. A file's whole records are
// read as they come; the code itself, which is most of it, is passed over.
type jitDump struct {
	names jitMap
	order binary.ByteOrder // nil before the header was read
	at    int64            // of the next record
	count int              // of the records before it
	lines map[uint64]int   // of names, by the compiler's number of the code
	done  bool             // nothing more is to be read
}

// Of the header: magic, version, total_size, elf_mach, pad, pid (4 bytes each), timestamp, flags (8 each). Which machine the
// code is for is not looked at, since some compilers write 0, and names are the same for all.
const (
	dumpMagic      = 0x4A695444 // "JiTD" as its writer has it in memory
	dumpVersion    = 1
	dumpHeader     = 40
	dumpRecord     = 16 // id, total_size (4 bytes each), timestamp (8)
	dumpLoad       = 0
	dumpMove       = 1
	dumpClose      = 3
	dumpLoadFields = 8 + 4*8 // pid, tid, vma, code_addr, code_size, code_index; the name and the code follow
	dumpMoveFields = 8 + 5*8 // pid, tid, vma, old_code_addr, new_code_addr, code_size, code_index
	maxDumpHeader  = 1 << 16
	maxDumpRecords = 4 * maxJITLines // some 4 us each, so that tiny ones that mean nothing don't keep us for ever
)

var (
	errDumpMagic   = errors.New("not a jitdump file")
	errDumpVersion = errors.New("jitdump of a version that is not known")
	errDumpRecord  = errors.New("damaged jitdump record; the rest is not read")
)

// add reads whole records up to a size of the file. An error is the file's and final.
func (d *jitDump) add(r io.ReaderAt, size int64) error {
	if d.done {
		return nil
	}
	before := len(d.names.lines)
	err := d.read(r, size)
	d.done = d.done || err != nil
	if len(d.names.lines) > before {
		d.names.lay()
	}
	return err
}

func (d *jitDump) read(r io.ReaderAt, size int64) error {
	if d.order == nil {
		if err := d.header(r, size); err != nil || d.order == nil {
			return err
		}
	}
	var buf [dumpRecord + dumpMoveFields + maxJITName]byte
	for size-d.at >= dumpRecord && len(d.names.lines) < maxJITLines && len(d.names.text) < maxJITMap {
		b := buf[:min(int64(len(buf)), size-d.at)]
		if n, err := r.ReadAt(b, d.at); err != nil && !(errors.Is(err, io.EOF) && n == len(b)) {
			return err
		}
		total := int64(d.order.Uint32(b[4:]))
		if total < dumpRecord {
			return fmt.Errorf("offset %d: record of %d bytes: %w", d.at, total, errDumpRecord)
		}
		if total > size-d.at {
			return nil // it is being written
		}
		if err := d.record(d.order.Uint32(b), b[dumpRecord:min(int64(len(b)), total)], total); err != nil {
			return fmt.Errorf("offset %d: %w", d.at, err)
		}
		if d.done {
			return nil
		}
		d.at += total
		if d.count++; d.count == maxDumpRecords {
			return fmt.Errorf("offset %d: %d records: %w", d.at, d.count, errJITSize)
		}
	}
	return nil
}

func (d *jitDump) header(r io.ReaderAt, size int64) error {
	if size < dumpHeader {
		return nil
	}
	var b [dumpHeader]byte
	if _, err := r.ReadAt(b[:], 0); err != nil {
		return err
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if order.Uint32(b[:]) != dumpMagic {
		order = binary.BigEndian
	}
	if order.Uint32(b[:]) != dumpMagic {
		return errDumpMagic
	}
	if v := order.Uint32(b[4:]); v != dumpVersion {
		return fmt.Errorf("%w: %d, want %d", errDumpVersion, v, dumpVersion)
	}
	total := order.Uint32(b[8:])
	if total < dumpHeader || total > maxDumpHeader {
		return fmt.Errorf("header of %d bytes: %w", total, errDumpRecord)
	}
	d.order, d.at, d.lines = order, int64(total), map[uint64]int{}
	return nil
}

// record takes in one record, of which b is the beginning behind what all have.
func (d *jitDump) record(id uint32, b []byte, total int64) error {
	switch id {
	case dumpLoad:
		if len(b) < dumpLoadFields {
			return errDumpRecord
		}
		size := d.order.Uint64(b[24:])
		if size > uint64(total) {
			return fmt.Errorf("%d bytes of code in a record of %d: %w", size, total, errDumpRecord)
		}
		name, _, _ := bytes.Cut(b[dumpLoadFields:], []byte{0})
		d.put(d.order.Uint64(b[16:]), size, d.order.Uint64(b[32:]), name)
	case dumpMove:
		if len(b) < dumpMoveFields {
			return errDumpRecord
		}
		d.move(d.order.Uint64(b[40:]), d.order.Uint64(b[24:]), d.order.Uint64(b[32:]))
	case dumpClose:
		d.done = true
	}
	return nil
}

// put notes code that was made.
func (d *jitDump) put(addr, size, index uint64, name []byte) {
	name = bytes.TrimSpace(name[:min(len(name), maxJITName)])
	if size == 0 || addr+size < addr || len(name) == 0 {
		return
	}
	m := &d.names
	d.lines[index] = len(m.lines)
	m.lines = append(m.lines, jitLine{addr, addr + size, uint32(len(m.text)), uint32(len(name))})
	m.text = append(m.text, name...)
}

// move notes that code is elsewhere now. Where it was there is none.
func (d *jitDump) move(index, to, size uint64) {
	m := &d.names
	k, known := d.lines[index]
	if !known {
		return
	}
	was := m.lines[k]
	if size == 0 {
		size = was.end - was.start
	}
	m.lines[k].end = was.start
	if to+size < to {
		return
	}
	d.lines[index] = len(m.lines)
	m.lines = append(m.lines, jitLine{to, to + size, was.name, was.size})
}

// find returns the name of the code at an address, "" when there is none.
func (d *jitDump) find(addr uint64) string { return d.names.find(addr) }
