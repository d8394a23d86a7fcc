package golang

import (
	"encoding/binary"

	"github.com/callreel/callreel/isa/arm64"
)

// On arm64 x28 is the goroutine, struct g, and nothing is behind the thread pointer in a program without cgo. A function's beginning and its
// return have nothing in x16, x17, x19 to x25, x27 and the flags (cmd/compile/abi-internal.md). Below the stack pointer are 8 bytes that are the
// function's own: the frame pointer that its caller is to find again.

// ARM64G is the register that has the goroutine.
const ARM64G = 28

// ScratchARM64 is a mask of the registers in which nothing is at a beginning and a return.
const ScratchARM64 = 1<<16 | 1<<17 | 0x7F<<19 | 1<<27

// GM is where in struct g its m is.
const GM = gM

// GsignalBehind is where in struct m the goroutine of signal handlers is, from Runtime.ProcID on (runtime/runtime2.go, go1.22 to go1.26).
const GsignalBehind = 8

// procIDOffset is where in struct m the thread's ID is, by whether struct gobuf has its field ret (runtime/runtime2.go): it did up to go1.24.
func procIDOffset(minor int) int32 {
	const g0, words, divmod = 8, 6, 8
	at := int32(g0 + 8*words + divmod)
	if minor <= 24 {
		at += 8
	}
	return at
}

// ProcIDs are all that procIDOffset may return.
func ProcIDs() [2]int32 { return [...]int32{procIDOffset(24), procIDOffset(25)} }

// ReadThreadOf reads what the runtime says of the thread on which the goroutine at g runs, with the thread's ID at procID in struct m. known is false if
// it says nothing, or what can't be: the thread is being set up, or g is none.
func ReadThreadOf(mem Memory, g uint64, procID int32) (t Thread, known bool) {
	const most = 1<<48 - 1<<12
	if g == 0 || g%8 != 0 || g > most {
		return Thread{}, false
	}
	m, err := wordAt(mem, g+gM)
	if err != nil || m == 0 || m%8 != 0 || m > most {
		return Thread{}, false
	}
	var b [16]byte
	if _, err := mem.ReadAt(b[:], m+uint64(procID)); err != nil {
		return Thread{}, false
	}
	le := binary.LittleEndian
	t = Thread{ID: le.Uint64(b[:]), G: g}
	if t.ID == 0 {
		return Thread{}, false
	}
	if gsignal := le.Uint64(b[GsignalBehind:]); gsignal != 0 {
		if t.Signals, err = StackOf(mem, gsignal); err != nil {
			return Thread{}, false
		}
	}
	return t, true
}

// StackOf reads where the stack of the goroutine at g is.
func StackOf(mem Memory, g uint64) (Stack, error) {
	var b [StackHi + 8]byte
	if _, err := mem.ReadAt(b[:], g); err != nil {
		return Stack{}, err
	}
	le := binary.LittleEndian
	return Stack{le.Uint64(b[StackLo:]), le.Uint64(b[StackHi:])}, nil
}

// CheckScratchARM64 is a mask of the registers that the check of the stack may change.
const CheckScratchARM64 = 1<<arm64.X16 | 1<<arm64.X17 | 1<<27

// StackCheckARM64 is StackCheck of arm64 (cmd/internal/obj/arm64, stacksplit):
//
//	ldr x16, [x28, #16]; cmp sp, x16; b.ls, or with a larger frame sub x17, sp, #size; cmp x17, x16,
//	and with one that is larger still subs, and b.lo in front of the comparison.
func StackCheckARM64(n int, at func(k int) *arm64.Inst) int {
	const (
		guard0 = 0xF9400B90 // ldr x16, [x28, #16]
		guard1 = 0xF9400F90 // ldr x16, [x28, #24]
		most   = 12
		lo, ls = 3, 9 // conditions
	)
	if n == 0 || at(0).Word != guard0 && at(0).Word != guard1 {
		return 0
	}
	for k := 1; k+1 < n && k < most; k++ {
		in := at(k)
		switch {
		case in.Class == arm64.BranchCond && in.Word&15 == ls:
			return k + 1
		case in.Class == arm64.BranchCond && in.Word&15 == lo:
		case in.Kind != arm64.Other || in.Base != arm64.NoReg || in.GPRWritten()&^CheckScratchARM64 != 0:
			return 0
		}
	}
	return 0
}
