package perf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// Type says what a record tells (enum perf_event_type, include/uapi/linux/perf_event.h).
type Type uint32

// The types that are read; others are passed over.
const (
	Lost        Type = 2
	Comm        Type = 3 // a thread's name has changed, mostly since it runs a new program
	Exit        Type = 4
	Throttle    Type = 5
	Fork        Type = 7 // a new thread or process
	Sample      Type = 9
	Mmap        Type = 10 // PERF_RECORD_MMAP2: code was mapped
	LostSamples Type = 13
	Switch      Type = 14 // a thread comes onto a processor, or leaves it
)

// Bits of a record's misc field.
const (
	miscModeMask = 7
	miscKernel   = 1
	miscExec     = 1 << 13 // of Comm: by execve
	miscOut      = 1 << 13 // of Switch: leaves
	miscPreempt  = 1 << 14 // of Switch: could have gone on
)

// What the registers of a sample are of (enum perf_sample_regs_abi).
const (
	NoRegisters = 0 // the thread is not in a program
	Bits32      = 1
	Bits64      = 2
)

// A Record is one thing that has happened. Its slices are valid until the next record.
type Record struct {
	Type     Type
	PID, TID uint32
	Time     uint64 // nanoseconds of CLOCK_MONOTONIC

	// Of a Sample.
	Kernel bool // the thread was in the kernel, on behalf of the program
	ABI    uint64
	Regs   [RegisterCount]uint64
	Chain  []byte // of the program, by frame pointers: words, of which those above ContextMax are no addresses
	Stack  []byte // from the stack pointer on, as much as there was

	Parent uint32 // of Fork: the process that has made it
	Exec   bool   // of Comm: a new program
	Name   []byte // of Comm: the new name; of Mmap: the file's path, or a special name
	Count  uint64 // of Lost and LostSamples: how many records

	// Of Mmap.
	Addr, Len, Offset uint64 // bytes
	Dev               uint64 // major<<32 | minor
	Inode             uint64
}

var errShort = errors.New("record is too short")

const (
	headerSize  = 8
	trailerSize = 16 // of records that are no samples: process, thread and time
)

// fields reads a record's fields in order. Once they do not suffice, short is set.
type fields struct {
	data  []byte
	short bool
}

func (f *fields) bytes(n uint64) []byte {
	if n > uint64(len(f.data)) {
		f.short, f.data = true, nil
		return nil
	}
	b := f.data[:n]
	f.data = f.data[n:]
	return b
}

func (f *fields) u64() uint64 {
	if b := f.bytes(8); b != nil {
		return binary.NativeEndian.Uint64(b)
	}
	return 0
}

func (f *fields) u32() uint32 {
	if b := f.bytes(4); b != nil {
		return binary.NativeEndian.Uint32(b)
	}
	return 0
}

// text is a string that zeros end.
func (f *fields) text() []byte {
	text, _, _ := bytes.Cut(f.data, []byte{0})
	f.data = nil
	return text
}

// Decode reads a record, which begins with its header. Of types that are not known
// only the type is set.
func (r *Record) Decode(data []byte) error {
	if len(data) < headerSize {
		return fmt.Errorf("perf: %w: %d bytes", errShort, len(data))
	}
	misc := binary.NativeEndian.Uint16(data[4:])
	*r = Record{Type: Type(binary.NativeEndian.Uint32(data))}
	f := fields{data: data[headerSize:]}
	if r.Type == Sample {
		r.Kernel = misc&miscModeMask == miscKernel
		r.sample(&f)
	} else {
		r.other(&f, misc)
	}
	if f.short {
		return fmt.Errorf("perf: record of type %d: %w: %d bytes", r.Type, errShort, len(data))
	}
	return nil
}

// ContextMax is the least number in a chain that tells whose addresses follow (PERF_CONTEXT_MAX).
const ContextMax = ^uint64(4095) + 1

// sample reads PERF_SAMPLE_TID, _TIME, _CALLCHAIN, _REGS_USER and _STACK_USER.
func (r *Record) sample(f *fields) {
	r.PID, r.TID, r.Time = f.u32(), f.u32(), f.u64()
	if n := f.u64(); n <= uint64(len(f.data))/8 {
		r.Chain = f.bytes(8 * n)
	} else {
		f.short, f.data = true, nil
	}
	if r.ABI = f.u64(); r.ABI != NoRegisters {
		for k := range r.Regs {
			r.Regs[k] = f.u64()
		}
	}
	if size := f.u64(); size > 0 {
		stack := f.bytes(size)
		used := f.u64() // the rest of the piece was not written to
		r.Stack = stack[:min(used, uint64(len(stack)))]
	}
}

// other reads all but samples.
func (r *Record) other(f *fields, misc uint16) {
	if len(f.data) < trailerSize {
		f.short = true
		return
	}
	trailer := f.data[len(f.data)-trailerSize:]
	f.data = f.data[:len(f.data)-trailerSize]
	r.Time = binary.NativeEndian.Uint64(trailer[8:])
	switch r.Type {
	case Lost:
		_, r.Count = f.u64(), f.u64() // the event's number comes first
	case LostSamples:
		r.Count = f.u64()
	case Comm:
		r.PID, r.TID, r.Exec, r.Name = f.u32(), f.u32(), misc&miscExec != 0, f.text()
	case Fork, Exit:
		r.PID, r.Parent, r.TID = f.u32(), f.u32(), f.u32()
	case Mmap:
		r.PID, r.TID = f.u32(), f.u32()
		r.Addr, r.Len, r.Offset = f.u64(), f.u64(), f.u64()
		r.Dev = uint64(f.u32())<<32 | uint64(f.u32())
		r.Inode = f.u64()
		f.bytes(8 + 4 + 4) // generation, protection, flags
		r.Name = f.text()
	}
}

// timeOf is a record's time, without all else.
func timeOf(data []byte) uint64 {
	const ofSample = headerSize + 8
	switch {
	case len(data) < headerSize+trailerSize:
		return 0
	case Type(binary.NativeEndian.Uint32(data)) == Sample:
		return binary.NativeEndian.Uint64(data[ofSample:])
	}
	return binary.NativeEndian.Uint64(data[len(data)-8:])
}
