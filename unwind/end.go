package unwind

import "fmt"

// Reason says why a walk ended.
type Reason uint8

// The reasons.
const (
	// Complete: the last frame is the outermost one: its return address is
	// undefined by CFI, or zero, or it is the program's entry.
	Complete Reason = iota
	// NoCFI: nothing describes the code of the last frame, and neither its
	// instructions nor the frame pointer lead to a believable caller.
	NoCFI
	// DamagedCFI: what describes the code of the last frame cannot be read.
	DamagedCFI
	// BadReturnAddress: what should be the return address does not lie in code.
	BadReturnAddress
	// Unreadable: memory that the caller is to be found in cannot be read.
	Unreadable
	// NotOutward: the caller's frame is not further out on the stack.
	NotOutward
	// Misaligned: the caller's stack pointer is no multiple of a register's size.
	Misaligned
	// Cycle: the walk came back to a stack that it had left, no further out.
	Cycle
	// LostRegister: a rule needs a register whose value is not known.
	LostRegister
	// TooDeep: there are more frames than were asked for.
	TooDeep
	// NoStack: the stack pointer does not point into memory that can be a stack.
	NoStack
	// ThreadGone: the thread ended before it could be looked at.
	ThreadGone
	// NotStopped: the thread did not stop in time.
	NotStopped
)

var reasonNames = [...]string{
	"complete", "no-cfi", "damaged-cfi", "bad-return-address", "unreadable-memory", "not-outward", "misaligned",
	"cycle", "lost-register", "too-deep", "no-stack", "thread-gone", "not-stopped",
}

var reasonWords = [...]string{
	"outermost frame",
	"no rule leads to the caller of the code at %#x",
	"the call frame information for %#x cannot be read",
	"%#x, in the place of the return address, is not in code",
	"the memory at %#x cannot be read",
	"the caller's frame would be at %#x, which is not further out",
	"the caller's frame would be at %#x, which is not aligned",
	"the walk came back to the stack at %#x",
	"a register is needed whose value at %#x is not known",
	"more frames follow",
	"the stack pointer %#x is not in a stack",
	"the thread has ended",
	"the thread did not stop in time",
}

// String returns the reason's name, which programs may rely on: "complete", "no-cfi" …
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "unknown"
}

// An End is how a walk ended.
type End struct {
	Reason Reason
	Addr   uint64 // that the reason is about: of code, of memory, or a stack pointer
	Err    error  // for DamagedCFI and LostRegister: more about it; may be nil
}

// Complete says that the outermost frame was reached.
func (e End) Complete() bool { return e.Reason == Complete }

// String says in words why the walk ended.
func (e End) String() string {
	if int(e.Reason) >= len(reasonWords) {
		return "unknown"
	}
	text := reasonWords[e.Reason]
	switch e.Reason {
	case Complete, TooDeep, ThreadGone, NotStopped:
	default:
		text = fmt.Sprintf(text, e.Addr)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}
