package lint

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

// signature says how a return address is signed (AArch64, pointer authentication).
type signature uint8

const (
	unsigned  signature = iota
	signedA             // with the A key and the CFA, as unwinders authenticate it
	signedB             // with the B key and the CFA
	signedOff           // with a stack pointer that isn't the CFA
)

// returnAddress is the id of the return address among the values on entry where no register holds it. Below it are the registers.
const returnAddress = 40

// value is the content of a register or of 8 bytes of memory.
//
// An anchor is a place in the own frame whose distance from the CFA is not known: the stack pointer after it was aligned
// or moved by a variable amount. Its id is the instruction that made it.
type value struct {
	kind kind
	may  may // of what is unknown, and of what a register held on entry: see processor.entry
	// hearsay says of an address that it was read from memory. What has a pointer to that memory, such as a container that
	// moves from the frame to the heap, may have changed it: stores through the address may go elsewhere.
	hearsay bool
	signed  signature // of the return address
	id      int32
	off     int64
}

var top = value{may: mayAll}

// maybe returns what the value may be.
func (v value) maybe() may {
	switch v.kind {
	case unknown, entry:
		return v.may
	case onStack, anchored:
		return mayStack | mayOwn
	}
	return 0
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

// plus adds or subtracts where one of the two is a number.
func plus(a, b value, sign int64) value {
	switch {
	case b.kind == constant:
		return a.add(sign * b.off)
	case a.kind == constant && sign > 0:
		return b.add(a.off)
	}
	return value{may: a.maybe() | b.maybe()}
}

// holds says whether the value certainly is what register id held on entry.
func (v value) holds(id int32) bool { return v.kind == entry && v.id == id }
