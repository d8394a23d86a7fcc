package unwind

// A Frame is one call that is under way.
type Frame struct {
	// PC is where the frame's code goes on: for the first frame, and one that a
	// signal has interrupted, the next instruction; for others the return address.
	PC uint64
	// SP is the stack pointer in the frame, as it is after the call returns.
	SP uint64
	// By is how the frame was found.
	By Rule
	Flags
}

// Flags are what else is known of a frame.
type Flags uint8

// The flags.
const (
	// Exact: PC is an instruction that is to be executed, not a return address.
	Exact Flags = 1 << iota
	// SignalFrame: the frame is the code that a signal handler returns to; the
	// next one was interrupted.
	SignalFrame
	// Late: memory was read for it after the snapshot was taken, when the thread
	// may have been running again.
	Late
)

// Has says whether all flags of a set are on.
func (f Flags) Has(set Flags) bool { return f&set == set }

// CodeAddr is an address inside the instruction that the frame is at: for a return
// address the last byte of the call. Look this up to name the frame.
func (f *Frame) CodeAddr() uint64 {
	if f.Has(Exact) || f.PC == 0 {
		return f.PC
	}
	return f.PC - 1
}

// Rule is the way in which a frame was found.
type Rule uint8

// The rules.
const (
	ByRegisters    Rule = iota // the thread's own registers
	ByCFI                      // a row of call frame information
	BySignalFrame              // the registers that the kernel saved for a signal
	ByCode                     // the instructions up to a return; no CFI there
	ByFramePointer             // the frame pointer; no CFI there
	ByLeaf                     // the return address on top of the stack; no CFI there
)

var ruleNames = [...]string{"registers", "cfi", "signal-frame", "code", "frame-pointer", "leaf"}

// String returns the rule in a word.
func (r Rule) String() string {
	if int(r) < len(ruleNames) {
		return ruleNames[r]
	}
	return "unknown"
}
