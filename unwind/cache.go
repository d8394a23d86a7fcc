package unwind

// kind is what is to be done at an address. The order matters: see Walker.fast.
type kind uint8

const (
	kindNone      kind = iota // nothing is known
	kindSP                    // the CFA is the stack pointer plus cfaOff
	kindFP                    // the CFA is the frame pointer plus cfaOff
	kindRow                   // a row that is kept in Walker.rows
	kindSignal                // a signal frame, known by its code
	kindOutermost             // there is no caller
	kindNoRule                // code without CFI that leads nowhere by itself
	kindDamaged               // CFI that cannot be read
	kindAsk                   // code of which only Options.Original knows what it stands for
	kindNotCode               // no code is there
)

// finish derives what a fast walk looks at.
func (e *entry) finish() {
	if e.kind != kindNone && e.kind < kindAsk {
		e.traits |= plain
	}
	if e.need = plain; e.traits&guess != 0 {
		e.need |= afterCall
	}
}

// entry is what a walk does at one address. For the first two kinds the return
// address is below the CFA, and the caller's frame pointer at fpOff from it, or
// unchanged when that is 0.
type entry struct {
	key    uint64 // see keyOf
	cfaOff int32
	fpOff  int32
	row    uint32 // of kindRow: index into Walker.rows
	next   uint32 // slot of the entry that followed it in the last walk
	kind   kind
	by     Rule  // how the caller is found
	flags  Flags // of the frame itself: SignalFrame
	traits traits
	need   traits // of the caller's address, in a fast walk
}

// traits are what else is known of an address.
type traits uint8

const (
	afterCall traits = 1 << iota // a call instruction ends there
	guess                        // the rule was not read from CFI: what it leads to must follow a call
	needsAll                     // the rule needs more registers than a fast walk keeps
	jit                          // no file is behind the code
	plain                        // a fast walk may come here
)

// The cache has one slot for an address; 8,192 hold all addresses in the stacks of a
// program of some hundred threads, in a quarter of a megabyte.
const (
	cacheBits = 13
	cacheMask = 1<<cacheBits - 1
)

type cache [1 << cacheBits]entry

// keyOf tells an address to be executed from the same address returned to. Return
// addresses come as they are, since nearly all are; those of a program have zeros on
// top (Arch.isCode), so that the two never meet.
func keyOf(pc uint64, exact bool) uint64 {
	if exact {
		return ^pc
	}
	return pc
}

// slotOf spreads keys by Fibonacci hashing: return addresses differ in middle bits.
func slotOf(key uint64) uint32 {
	return uint32(key * 0x9e3779b97f4a7c15 >> (64 - cacheBits))
}

// maxRows bounds the rows that are kept; when there are more, all that is known is
// forgotten. Programs have some dozens of frames that need one.
const maxRows = 1 << 12
