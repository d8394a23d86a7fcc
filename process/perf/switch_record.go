package perf

import (
	"encoding/binary"
	"fmt"
)

// A SwitchRecord is one thing that has happened to a thread whose switches are told.
type SwitchRecord struct {
	Type      Type // Switch, Fork, Exit, Comm, Sample (a page fault), Lost, or another
	PID, TID  uint32
	ParentPID uint32 // of Fork: the process and thread that have made it
	ParentTID uint32
	Time      uint64 // nanoseconds of the clock that was asked for

	Out, Preempted bool   // of Switch
	Exec           bool   // of Comm: a new program
	Major          bool   // of Sample
	Address        uint64 // of Sample
	Count          uint64 // of Lost
}

// Sizes of samples: those of minor faults also have the processor, only so that they can be told from major ones.
const (
	majorSize = headerSize + 24
	minorSize = headerSize + 32
)

// Decode reads a record, which begins with its header. Of types that are not known only the type is set.
func (r *SwitchRecord) Decode(data []byte) error {
	if len(data) < headerSize {
		return fmt.Errorf("perf: %w: %d bytes", errShort, len(data))
	}
	misc := binary.NativeEndian.Uint16(data[4:])
	*r = SwitchRecord{Type: Type(binary.NativeEndian.Uint32(data))}
	r.Time = timeOf(data)
	u32 := func(at int) uint32 { return binary.NativeEndian.Uint32(data[headerSize+at:]) }
	u64 := func(at int) uint64 { return binary.NativeEndian.Uint64(data[headerSize+at:]) }
	need := 0
	switch r.Type {
	case Switch:
		need = trailerSize
	case Fork, Exit:
		need = 24 + trailerSize
	case Comm:
		need = 8 + trailerSize
	case Sample:
		need = 24
	case Lost:
		need = 16 + trailerSize
	}
	if len(data) < headerSize+need {
		return fmt.Errorf("perf: record of type %d: %w: %d bytes", r.Type, errShort, len(data))
	}
	switch r.Type {
	case Switch:
		r.PID, r.TID = u32(0), u32(4)
		r.Out, r.Preempted = misc&miscOut != 0, misc&miscPreempt != 0
	case Fork, Exit:
		r.PID, r.ParentPID, r.TID, r.ParentTID = u32(0), u32(4), u32(8), u32(12)
	case Comm:
		r.PID, r.TID, r.Exec = u32(0), u32(4), misc&miscExec != 0
	case Sample:
		r.PID, r.TID, r.Time, r.Address = u32(0), u32(4), u64(8), u64(16)
		r.Major = len(data) < minorSize
	case Lost:
		r.Count = u64(8)
		if len(data) > headerSize+16+trailerSize { // of a minor fault's event, whose trailer has the processor, too
			r.Time = binary.NativeEndian.Uint64(data[len(data)-16:])
		}
	}
	return nil
}
