package sampler

import (
	"encoding/binary"
	"errors"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/unwind"
)

// sampledImages is what is mapped, with the stack that a sample has a piece of: threads
// are born more often than mappings are read.
type sampledImages struct {
	mapped     unwind.Map
	start, end uint64
}

// Mapping implements unwind.Images.
func (s *sampledImages) Mapping(addr uint64) (unwind.Mapping, bool) {
	if m, ok := s.mapped.Mapping(addr); ok {
		return m, true
	}
	if addr >= s.start && addr < s.end {
		return unwind.Mapping{Start: s.start, End: s.end, Write: true}, true
	}
	return unwind.Mapping{}, false
}

var errNotKept = errors.New("not part of the sample")

// sampledMemory is what can be known of memory at a sample's moment, beyond the piece of
// stack: what does not change, and what the red zone must hold.
type sampledMemory struct {
	images  *sampledImages
	p       *process.Process // nil when it cannot be read
	regs    *unwind.Registers
	machine cfi.Machine
}

// ReadMemory implements unwind.Memory.
func (m *sampledMemory) ReadMemory(addr uint64, buf []byte) (int, error) {
	if sp, _ := m.regs.Get(unwind.Host().SP()); addr < sp && sp-addr <= unwind.Host().RedZone() {
		return m.redZone(addr, buf)
	}
	at, ok := m.images.mapped.Mapping(addr)
	if !ok || at.Write || m.p == nil {
		if im, isFile := at.Image.(*Image); ok && !at.Write && isFile {
			return fromFile(im, addr, buf)
		}
		return 0, errNotKept
	}
	buf = buf[:min(uint64(len(buf)), at.End-addr)]
	return m.p.ReadUpTo(buf, addr), nil
}

func fromFile(im *Image, addr uint64, buf []byte) (int, error) {
	file := im.File()
	if file == nil {
		return 0, errNotKept
	}
	data, err := file.ReadAddr(addr-im.Slide(), uint64(len(buf)))
	if err != nil {
		return 0, err
	}
	return copy(buf, data), nil
}

// redZone reads below the stack pointer, which the kernel does not copy. Where a row says
// that a register was saved there, an epilogue has popped it already (compilers do not
// change the row for that), so that the register holds what the place did.
func (m *sampledMemory) redZone(addr uint64, buf []byte) (int, error) {
	at, ok := m.images.mapped.Mapping(m.regs.PC)
	if !ok || at.Image == nil || len(buf) != 8 {
		return 0, errNotKept
	}
	row, _, err := at.Image.Row(&m.machine, m.regs.PC-at.Image.Slide())
	if err != nil || row == nil || row.CFA.Kind != cfi.RegOffset {
		return 0, errNotKept
	}
	base, ok := m.regs.Get(int(row.CFA.Reg))
	if !ok {
		return 0, errNotKept
	}
	for k := range row.Regs {
		r := &row.Regs[k]
		if r.Kind != cfi.Offset || r.Reg == row.RAReg || base+uint64(row.CFA.Offset)+uint64(r.Offset) != addr {
			continue
		}
		if v, ok := m.regs.Get(int(r.Reg)); ok {
			binary.LittleEndian.PutUint64(buf, v)
			return 8, nil
		}
	}
	return 0, errNotKept
}
