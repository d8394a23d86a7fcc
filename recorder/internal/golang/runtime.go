package golang

import "github.com/callreel/callreel/isa/amd64"

// Runtime is what stubs of a Go program need to know.
type Runtime struct {
	// GoID is where goid is in struct g, in bytes. ProcID is where, on arm64, the thread's ID is in struct m.
	GoID, ProcID int32
	// Stacks is the address of the stacks for the slow path, see ring.GoStackShift.
	Stacks uint64
}

// Scratch is a mask of the registers that hold nothing at an entry, behind the stack check, and at a return of what the Go compiler has
// made (cmd/compile/abi-internal.md).
const Scratch = uint16(1<<amd64.R12 | 1<<amd64.R13 | 1<<amd64.R15)

// Where, from the FS base, which is 8 above m.tls, Go programs without cgo have what stubs need: g, and of struct m procid and gsignal
// (runtime/runtime2.go, go1.22 to go1.26: between them and tls are goSigStack, 40 bytes, and sigmask, 8).
const (
	G       = -8
	Gsignal = -64
	ProcID  = -72
)

// Offsets in struct g: its stack, its m, and the stack pointer at which it goes on if it doesn't run (runtime/runtime2.go, go1.22 to
// go1.26).
const (
	StackLo  = 0
	StackHi  = 8
	gM       = 48
	gSchedSP = 56
)

// StackCheck returns the index of the first instruction behind the check whether the stack is large enough
// (cmd/internal/obj/x86, stacksplit), 0 if the function has none. Those that grow the stack come to the check once more. at gives the
// function's n instructions.
func StackCheck(n int, at func(k int) *amd64.Inst) int {
	const most = 7
	for k := 0; k+1 < n && k < most; k++ {
		in, next := at(k), at(k+1)
		if in.Map == amd64.MapPrimary && in.Opcode == 0x3B && in.HasMem && in.Base == int8(amd64.R14) && in.Index == amd64.NoReg &&
			(in.Disp == 16 || in.Disp == 24) && (in.Reg == uint8(amd64.RSP) || in.Reg == uint8(amd64.R12)) &&
			next.Kind == amd64.CondJump && next.Opcode&15 == uint8(amd64.CondBE) && k+2 < n {
			return k + 2
		}
		if in.Ends() || in.Kind == amd64.Call || in.Kind == amd64.IndirectCall || in.GPRWritten()&^(amd64.R12.Mask()|amd64.R14.Mask()) != 0 {
			return 0
		}
	}
	return 0
}

// MayPanic says whether an instruction may fault, where the runtime makes a panic of that by the PC. From a PC that
// isn't Go code it can only do so when the return address is on top of the stack: it takes the fault for one of the caller's then
// (runtime/signal_unix.go, shouldPushSigpanic).
func MayPanic(in *amd64.Inst) bool {
	if !in.MayFault() {
		return false
	}
	if in.HasMem && in.Index == amd64.NoReg {
		switch in.Base {
		case int8(amd64.RSP), int8(amd64.RBP), int8(amd64.R14): // the frame and g are there
			return in.Disp < 0 && in.Base == int8(amd64.RSP)
		}
		if in.RIPRelative {
			return false
		}
	}
	return true
}
