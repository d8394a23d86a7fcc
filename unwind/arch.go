package unwind

import (
	"encoding/binary"
	"runtime"

	"github.com/callreel/callreel/object"
)

// DWARF register numbers of x86-64 (System V AMD64 ABI, figure 3.36).
const (
	AMD64RAX = 0
	AMD64RDX = 1
	AMD64RCX = 2
	AMD64RBX = 3
	AMD64RSI = 4
	AMD64RDI = 5
	AMD64RBP = 6
	AMD64RSP = 7
	AMD64R8  = 8 // and so on to R15 = 15
	AMD64R12 = 12
)

// Arch is what a walk has to know of an architecture.
type Arch struct {
	object   object.Arch
	wordSize uint64 // of an address and of a saved register, bytes
	order    binary.ByteOrder
	sp, fp   int
	lr       int    // register that a call leaves the return address in, -1 when on the stack
	last     uint64 // highest address of a program
	redZone  uint64 // bytes below the stack pointer that a function may use
	strip    uint64 // the bits of a code address; others are a pointer's signature
	signal   []signalFrame
	amd64    bool // its code is x86-64's, which is followed to its return
	a64      bool // its code is A64, which is so, too
	syscall  []int
}

// The architectures.
var (
	// AMD64 is x86-64 as System V AMD64 ABI has it.
	AMD64 = &Arch{
		object: object.AMD64, wordSize: 8, order: binary.LittleEndian,
		sp: AMD64RSP, fp: AMD64RBP, lr: -1, last: 1<<56 - 1, redZone: 128, strip: 1<<64 - 1,
		signal: amd64Signal, amd64: true,
		syscall: []int{AMD64RDI, AMD64RSI, AMD64RDX, AMD64R8 + 2, AMD64R8, AMD64R8 + 1},
	}
	// ARM64 is AArch64 (AAPCS64; DWARF for the Arm 64-bit Architecture §4.1). User
	// addresses have 48 bits; what is above is the signature of pointer
	// authentication, or a tag.
	ARM64 = &Arch{
		object: object.ARM64, wordSize: 8, order: binary.LittleEndian,
		sp: 31, fp: 29, lr: 30, last: 1<<48 - 1, strip: 1<<48 - 1, signal: arm64Signal, a64: true,
		syscall: []int{0, 1, 2, 3, 4, 5},
	}
	// ARM64Darwin is AArch64 as Apple's systems have it: user addresses have 47 bits.
	ARM64Darwin = &Arch{
		object: object.ARM64, wordSize: 8, order: binary.LittleEndian,
		sp: 31, fp: 29, lr: 30, last: 1<<47 - 1, strip: 1<<47 - 1, a64: true,
		syscall: []int{0, 1, 2, 3, 4, 5},
	}
	// I386 is 32-bit x86 (System V i386 ABI §2.4.2).
	I386 = &Arch{
		object: object.I386, wordSize: 4, order: binary.LittleEndian,
		sp: 4, fp: 5, lr: -1, last: 1<<32 - 1, strip: 1<<32 - 1, signal: i386Signal,
		syscall: []int{3, 1, 2, 6, 7, 5},
	}
)

// ArchOf returns the architecture of an image, nil when no walk is possible there.
func ArchOf(a object.Arch) *Arch {
	for _, known := range []*Arch{AMD64, ARM64, I386} {
		if known.object == a {
			return known
		}
	}
	return nil
}

// host is the architecture that this program runs on.
var host = func() *Arch {
	for _, known := range []*Arch{AMD64, ARM64, I386} {
		if known.String() == runtime.GOARCH {
			strip := stripHere(known.strip)
			if strip == known.strip {
				return known
			}
			here := *known
			here.strip = strip
			return &here
		}
	}
	return nil
}()

// Host returns the architecture that this program runs on, nil when no walk is possible there.
func Host() *Arch { return host }

// SyscallArgs are the DWARF numbers of the registers that a system call of Linux takes its arguments from.
func (a *Arch) SyscallArgs() []int { return a.syscall }

// String returns Go's name of the architecture.
func (a *Arch) String() string { return a.object.String() }

// SP and FP are the DWARF numbers of the stack pointer and of the frame pointer.
func (a *Arch) SP() int { return a.sp }

// FP is the DWARF number of the frame pointer.
func (a *Arch) FP() int { return a.fp }

// RedZone is the number of bytes below the stack pointer that belong to a function.
// A snapshot of a stack begins that much below it: registers that an epilogue has
// restored keep their place there in the rows of many compilers.
func (a *Arch) RedZone() uint64 { return a.redZone }

// followed says whether code without CFI is followed to its return.
func (a *Arch) followed() bool { return a.amd64 || a.a64 }

// isCode says whether an address may be a program's at all.
func (a *Arch) isCode(pc uint64) bool { return pc != 0 && pc <= a.last }

// word decodes a saved register.
func (a *Arch) word(b []byte) uint64 {
	if a.wordSize == 4 {
		return uint64(a.order.Uint32(b))
	}
	return a.order.Uint64(b)
}

// add moves an address by a signed offset, within the width of addresses.
func (a *Arch) add(addr uint64, off int64) uint64 {
	addr += uint64(off)
	if a.wordSize == 4 {
		return uint64(uint32(addr))
	}
	return addr
}
