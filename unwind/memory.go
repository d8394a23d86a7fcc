package unwind

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"
)

// Memory is memory that is read while a walk goes on.
type Memory interface {
	// ReadMemory fills buf from addr and returns how many bytes it got: fewer than
	// asked for where the memory ends, with or without an error.
	ReadMemory(addr uint64, buf []byte) (int, error)
}

// A Snapshot is a thread at one moment: its registers and the part of its stack that
// is in use.
type Snapshot struct {
	Regs Registers
	// Stack is what the memory held from Addr on, which is at or below the stack
	// pointer (see Arch.RedZone). The walk only reads it.
	Stack []byte
	Addr  uint64
	// Memory is all other memory: code, other stacks. Nil means that there is none.
	Memory Memory
	// Chain is what somebody has found at the same moment by frame pointers alone: the
	// instruction pointer, then return addresses. A walk that leads to a stack whose
	// memory isn't there goes on with it. It may be nil.
	Chain []uint64
	// Frozen says that Memory is of the same moment, as in a core file, so that
	// no frame is Late.
	Frozen bool
	// Return says that the PC of Regs is a return address, as that of a caller whose
	// registers somebody else has found. The first frame is not Exact then.
	Return bool
}

// errUnreadable is the cause when memory that an expression asks for is not there.
var errUnreadable = errors.New("memory cannot be read")

// stackBlock is how much of a stack outside of the snapshot is read at once.
const stackBlock = 32 << 10

// block is a contiguous part of memory that was read.
type block struct {
	addr uint64
	data []byte
	late bool

	// The same in aligned words, for a fast walk; empty where the machine that this
	// runs on would read them in another way than the one that wrote them.
	words   []uint64
	wordsAt uint64
}

// newBlock makes a block of data, which was read at addr.
func newBlock(addr uint64, data []byte, late bool) block {
	w := block{addr: addr, data: data, late: late}
	skip := -addr & 7
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 || uint64(len(data)) < skip+8 {
		return w
	}
	aligned := data[skip:]
	if first := unsafe.Pointer(unsafe.SliceData(aligned)); uintptr(first)&7 == 0 {
		w.words, w.wordsAt = unsafe.Slice((*uint64)(first), len(aligned)/8), addr+skip
	}
	return w
}

// at returns n bytes at an address, nil when the block does not hold them all.
func (w *block) at(addr, n uint64) []byte {
	off := addr - w.addr
	if size := uint64(len(w.data)); off >= size || n > size-off {
		return nil
	}
	return w.data[off : off+n]
}

// reader reads for one walk: from the block that the walk is in, from the snapshot,
// and then from memory.
type reader struct {
	arch     *Arch
	current  block // that the stack pointer is in
	snapshot block
	memory   Memory
	frozen   bool
	buf      []byte // of a block outside of the snapshot
	small    [8]byte
	late     bool // memory outside of the snapshot was read since this was last cleared
}

func (r *reader) reset(arch *Arch, s *Snapshot) {
	r.arch, r.memory, r.frozen, r.late = arch, s.Memory, s.Frozen, false
	r.snapshot = newBlock(s.Addr, s.Stack, false)
	r.current = r.snapshot
}

// release lets go of what belongs to the caller.
func (r *reader) release() { r.current, r.snapshot, r.memory = block{}, block{}, nil }

// word reads a saved register or an address.
func (r *reader) word(addr uint64) (uint64, bool) {
	buf := r.small[:r.arch.wordSize]
	if !r.read(addr, buf) {
		return 0, false
	}
	return r.arch.word(buf), true
}

// read fills buf.
func (r *reader) read(addr uint64, buf []byte) bool {
	n := uint64(len(buf))
	if b := r.current.at(addr, n); b != nil {
		r.late = r.late || r.current.late
		copy(buf, b)
		return true
	}
	if b := r.snapshot.at(addr, n); b != nil {
		copy(buf, b)
		return true
	}
	if r.memory == nil || addr+n < addr {
		return false
	}
	got, _ := r.memory.ReadMemory(addr, buf)
	r.late = r.late || !r.frozen
	return got == len(buf)
}

// code fills as much of buf as there is; code does not change, so it is never late.
func (r *reader) code(addr uint64, buf []byte) []byte {
	if r.memory == nil || addr+uint64(len(buf)) < addr {
		return nil
	}
	got, _ := r.memory.ReadMemory(addr, buf)
	return buf[:min(max(got, 0), len(buf))]
}

// readExpr is read as expressions want it.
func (r *reader) readExpr(addr uint64, buf []byte) error {
	if !r.read(addr, buf) {
		return fmt.Errorf("%w: %d bytes at %#x", errUnreadable, len(buf), addr)
	}
	return nil
}

// enter makes the block that holds a stack pointer the current one, reading it when
// it is outside of the snapshot. What is not there fails when it is needed.
func (r *reader) enter(sp uint64) {
	n := r.arch.wordSize
	switch {
	case r.current.at(sp, n) != nil:
	case r.snapshot.at(sp, n) != nil:
		r.current = r.snapshot
	case r.memory != nil:
		if r.buf == nil {
			r.buf = make([]byte, stackBlock)
		}
		from := sp - min(sp, r.arch.redZone)
		got, _ := r.memory.ReadMemory(from, r.buf)
		if got <= int(sp-from) { // the red zone may be below the mapping
			from = sp
			got, _ = r.memory.ReadMemory(from, r.buf)
		}
		r.current = newBlock(from, r.buf[:min(max(got, 0), len(r.buf))], !r.frozen)
	}
}
