package lint

import "github.com/callreel/callreel/isa/amd64"

// kind is what is known of a value.
type kind uint8

const (
	unknown  kind = iota // nothing but what it may be
	constant             // the number off
	onStack              // the CFA plus off
	entry                // what register id held on entry
	anchored             // what anchor id stands for, plus off
	never                // of memory: not written since entry
)

// may says what an unknown value may be.
type may uint8

const (
	mayEntry  may = 1 << iota // what some register that calls keep held on entry, or the return address
	mayArg                    // what another register held on entry
	mayStack                  // an address in a stack
	mayOwn                    // an address in the function's own frame
	mayCallee                 // what a function that was called left there
	mayAll    = mayEntry | mayArg | mayStack | mayOwn
)

// returnAddress is the id of the return address among the values on entry. Below it are the general registers.
const returnAddress = 16

// value is the content of a register or of 8 bytes of memory.
//
// An anchor is a place in the own frame whose distance from the CFA is not known: the stack pointer after it was aligned
// or moved by a variable amount. Its id is the instruction that made it.
type value struct {
	kind kind
	may  may
	// hearsay says of an address that it was read from memory. What has a pointer to that memory, such as a container that
	// moves from the frame to the heap, may have changed it: stores through the address may go elsewhere.
	hearsay bool
	id      int32
	off     int64
}

var top = value{may: mayAll}

// maybe returns what the value may be.
func (v value) maybe() may {
	switch v.kind {
	case unknown:
		return v.may
	case onStack, anchored:
		return mayStack | mayOwn
	case entry:
		return mayHold(v.id)
	}
	return 0
}

// mayHold is what a value may be that is that of register id on entry.
func mayHold(id int32) may {
	if id == returnAddress || calleeSaved>>id&1 != 0 {
		return mayEntry
	}
	return mayArg
}

// framed says whether the value is a known place in the own frame.
func (v value) framed() bool { return v.kind == onStack || v.kind == anchored }

// join is what is known where two paths meet.
func join(a, b value) value {
	if a == b {
		return a
	}
	if a.hearsay != b.hearsay {
		if a.hearsay, b.hearsay = true, true; a == b {
			return a
		}
	}
	return value{may: a.maybe() | b.maybe()}
}

// add adds a number.
func (v value) add(n int64) value {
	switch v.kind {
	case constant, onStack, anchored:
		v.off += n
		return v
	}
	if n == 0 {
		return v
	}
	return value{may: v.maybe()}
}

// holds says whether the value certainly is what register id held on entry.
func (v value) holds(id int32) bool { return v.kind == entry && v.id == id }

// cannotHold says whether the value certainly is something else.
func (v value) cannotHold(id int32) bool {
	return !v.holds(id) && (v.kind == entry || v.maybe()&mayHold(id) == 0)
}

// Sets of registers, as amd64.Reg.Mask (System V AMD64 ABI §3.2.1).
const (
	calleeSaved = uint16(1<<amd64.RBX | 1<<amd64.RBP | 1<<amd64.R12 | 1<<amd64.R13 | 1<<amd64.R14 | 1<<amd64.R15)
	callerSaved = ^calleeSaved &^ uint16(1<<amd64.RSP)
)
