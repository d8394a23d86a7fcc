package symbolize

import "github.com/callreel/callreel/symbols"

// Kind is what a frame's address is.
type Kind uint8

// The kinds.
const (
	// Auto is the address of an instruction in a thread's first frame, and a return
	// address in all others.
	Auto Kind = iota
	// Return is an address behind a call, in a first frame too, as in the stacks that
	// programs print of themselves.
	Return
	// Exact is the address of the instruction itself, as in a frame that a signal or a
	// fault interrupted.
	Exact
	// Signal is a frame that an unwinder marked for a signal. Some mark the trampoline
	// that the handler returns to, some the frame that was interrupted; both addresses
	// are exact, and behind a trampoline the next frame's is, too.
	Signal
)

// A Frame is one captured address.
type Frame struct {
	Address uint64
	Kind    Kind

	// Place stands for the address where no image is known to hold it and the capture
	// says itself which file's code it is, as in glibc's "path(+0x123)"; nil otherwise.
	Place *Place
}

// A Place is code in a file.
type Place struct {
	Path   string
	ID     string // "" when not known
	Symbol string // that Offset counts from; "" for link address 0
	Offset uint64
}

// A Call is one function at an address: the one that holds its code, or one that was inlined.
type Call struct {
	Function string // demangled, full form
	Linkage  string // as the image has it
	File     string // "" when not known
	Line     uint32 // 0 when not known
	Inlined  bool   // into the next Call
}

// A Named is a frame with all that could be found out about it.
type Named struct {
	Address uint64
	Image   *Image // nil when none holds the address
	Offset  uint64 // from Image.Load; without a load address, the link address
	Calls   []Call // innermost first; empty when nothing is known, and Reason says why
	Reason  string

	// In the place of Calls, if JSON is all that is wanted: valid until the next frame.
	found []symbols.Frame
	texts *Texts
}
