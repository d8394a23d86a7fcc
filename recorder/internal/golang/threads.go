package golang

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Memory is that of a process. Both methods may be asked for any address, and fill less of the buffer than it holds.
type Memory interface {
	// ReadAt fills the buffer, or fails.
	ReadAt(buf []byte, addr uint64) (int, error)
	// ReadUpTo returns how much of the buffer it has filled: less where the memory ends.
	ReadUpTo(buf []byte, addr uint64) int
}

// ErrUnexpected is in the chain of errors of a process whose memory isn't as a Go program's of its version.
var ErrUnexpected = errors.New("its Go runtime isn't as expected")

// Thread is what the runtime says of a thread.
type Thread struct {
	ID      uint64 // the kernel's, as the process sees it
	G       uint64 // the address of the struct g of the goroutine that runs on it
	Signals Stack  // where its signal handlers run; without addresses if it has no such stack yet
}

// Stack is the addresses from Lo to before Hi.
type Stack struct{ Lo, Hi uint64 }

// Has says whether addr is on it.
func (s Stack) Has(addr uint64) bool { return s.Lo <= addr && addr < s.Hi }

// mostBehind is how far the thread pointer may be behind the start of struct m, whose field tls it leads to, in bytes.
const mostBehind = 1024

// ReadThread reads what the runtime says of the thread with that thread pointer. known is false if it says nothing yet: the thread is being
// set up. It needs memory up to 72 bytes below the pointer.
func ReadThread(mem Memory, pointer uint64) (t Thread, known bool, err error) {
	if pointer == 0 {
		return Thread{}, false, nil
	}
	var b [-ProcID]byte
	if _, err := mem.ReadAt(b[:], pointer-uint64(len(b))); err != nil {
		return Thread{}, false, err
	}
	le := binary.LittleEndian
	field := func(off int) uint64 { return le.Uint64(b[len(b)+off:]) }
	t = Thread{ID: field(ProcID), G: field(G)}
	if t.ID == 0 || t.G == 0 {
		return Thread{}, false, nil
	}
	m, err := wordAt(mem, t.G+gM)
	if err != nil {
		return t, false, fmt.Errorf("%w: %w", ErrUnexpected, err)
	}
	if m >= pointer || pointer-m > mostBehind {
		return t, false, fmt.Errorf("%w: its m is at %#x, its thread pointer %#x", ErrUnexpected, m, pointer)
	}
	if gsignal := field(Gsignal); gsignal != 0 {
		var stack [StackHi + 8]byte
		if _, err := mem.ReadAt(stack[:], gsignal); err != nil {
			return t, false, fmt.Errorf("%w: %w", ErrUnexpected, err)
		}
		t.Signals = Stack{le.Uint64(stack[StackLo:]), le.Uint64(stack[StackHi:])}
	}
	return t, true, nil
}

// wordAt reads 8 bytes.
func wordAt(mem Memory, addr uint64) (uint64, error) {
	var b [8]byte
	_, err := mem.ReadAt(b[:], addr)
	return binary.LittleEndian.Uint64(b[:]), err
}
