package symbols

import (
	"fmt"

	"github.com/callreel/callreel/demangle"
)

// A Frame is one function at an address: the one whose code it is, or one whose
// call was inlined there. Its strings alias the map and are valid until Close.
type Frame struct {
	Linkage string // the symbol's or DWARF's linkage name, mangled
	Dir     string // of the source file; "" when unknown, or when Base says all
	Base    string // name of the source file; "" when the file is unknown
	Line    uint32 // 0 when unknown, or when the compiler says that no line made the code

	// NameID and FileID are the map's numbers of Linkage and of the file: where the numbers
	// of one map are equal, the texts are, so that what is made of these can be kept by
	// them. FileID is 0 when the file is unknown.
	NameID, FileID uint32

	// Inlined says that the function was inlined into the one of the next frame,
	// whose Dir, Base and Line are those of the call.
	Inlined bool

	// FunctionStart is the lowest link address of the range that holds the looked-up
	// one: of the function whose code it is, in inlined frames too. A function's cold
	// part is a range of its own.
	FunctionStart uint64
}

// Function returns the demangled name in full form; what is not mangled as it is.
func (f *Frame) Function() string { return demangle.Name(f.Linkage) }

// File returns directory and base name joined, "" when the file is unknown.
func (f *Frame) File() string {
	switch {
	case f.Dir == "":
		return f.Base
	case f.Base == "":
		return f.Dir
	case f.Dir[len(f.Dir)-1] == '/':
		return f.Dir + f.Base
	}
	return f.Dir + "/" + f.Base
}

// Reason says why Lookup found nothing.
type Reason uint8

// The reasons.
const (
	Found       Reason = iota
	NoFunction         // between functions: padding, data among code, or code that nothing names
	OutsideCode        // no code of the image is linked to this address
	Stripped           // the image and its debug file name no function at all
	Damaged            // the map contradicts itself there
)

// String returns the reason in words.
func (r Reason) String() string {
	switch r {
	case Found:
		return "found"
	case NoFunction:
		return "no function at this address"
	case OutsideCode:
		return "not in this image's code"
	case Stripped:
		return "stripped: no function of this image has a name"
	case Damaged:
		return "symbol map damaged here"
	}
	return fmt.Sprintf("reason %d", uint8(r))
}
