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

// finish derives what a fast walk looks at. It goes from return address to return address.
func (e *entry) finish(exact bool) {
	if !exact && e.kind != kindNone && e.kind < kindAsk {
		e.traits |= plain
	}
	if e.least = 1; e.by == ByFramePointer {
		e.least = 16 // the frame record is on the stack, not below it
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
	least  uint8  // of kindFP: bytes from the stack pointer to the CFA, at least
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

// 8,192 slots hold all addresses in the stacks of a program of some hundred threads, in a
// quarter of a megabyte. An address has four to choose from: with one only, a stack of 70
// frames would have two that drive each other out in one of four processes, and finding
// a rule anew takes as long as walking through hundreds of known ones.
const (
	cacheBits = 13
	cacheMask = 1<<cacheBits - 1
	cacheWays = 4
)

type cache [1 << cacheBits]entry

// keyOf tells an address to be executed from the same address returned to. Return
// addresses come as they are, since nearly all are; those of a program have zeros on
// top (Arch.isCode), so that the two never meet. What is no address of code has one key, for all
// that is known of it is the same.
func (a *Arch) keyOf(pc uint64, exact bool) uint64 {
	switch {
	case !a.isCode(pc):
		return 0
	case exact:
		return ^pc
	}
	return pc
}

// slotsOf returns the first of the slots that a key has, spreading keys by Fibonacci
// hashing: return addresses differ in middle bits.
func slotsOf(key uint64) uint32 {
	return uint32(key*0x9e3779b97f4a7c15>>(64-cacheBits)) &^ (cacheWays - 1)
}

// slot returns the slot that holds a key, false when none does.
func (c *cache) slot(key uint64) (uint32, bool) {
	first := slotsOf(key)
	for k := first; k < first+cacheWays; k++ {
		if e := &c[k&cacheMask]; e.key == key && e.kind != kindNone {
			return k, true
		}
	}
	return 0, false
}

// slotFor returns a slot for a key that has none yet: a free one, else one of another key, not
// always the same.
func (c *cache) slotFor(key uint64) uint32 {
	first := slotsOf(key)
	for k := first; k < first+cacheWays; k++ {
		if c[k&cacheMask].kind == kindNone {
			return k
		}
	}
	return first + uint32(key%cacheWays)
}

// maxRows bounds the rows that are kept; when there are more, all that is known is
// forgotten. Programs have some dozens of frames that need one.
const maxRows = 1 << 12
