package reel

// The predictor is the state that encoder and decoder keep in step. It starts
// all zero at each chunk, so a chunk decodes without any other.
//
// It follows the stack of open calls and, for each open call, a hash of the
// function and its last few callees. That hash picks a slot in a table, and the
// slot says what came next the last time the hash was the same: a call of some
// function so many bytes of stack further down, or the exit. On redis the slot
// is right for 95 % of events, and the exit of the innermost call accounts for
// half of the rest.
//
// Nothing here must be right for the encoding to be lossless; both sides only
// have to make the same mistakes. Hence the stack is a ring without overflow
// check, and stale frames are harmless.

const (
	stackSlots = 1 << 11
	tableBits  = 13
	pairBits   = 10

	// maxUnwind bounds how many frames one spelled-out event may drop.
	maxUnwind = 256

	// maxLearned is the first time delta, in ticks, that counts as a wait, if it
	// differs from the one expected by maxDrift or more. maxDrift is what two
	// bytes hold.
	maxLearned = 1 << 16
	maxDrift   = 1 << 12
)

// openFrame is an open call as the predictor sees it.
type openFrame struct {
	sp   uint32
	seed uint32 // seedOf its entry's word; 0 below the outermost known call
	path uint32 // its last callees
	_    uint32 // 16 bytes index faster than 12
}

// slot holds what followed the last time.
type slot struct {
	word  uint32
	drop  uint32 // the open frame's SP minus the event's
	delta uint32 // ticks since the event before
	_     uint32
}

type predictor struct {
	stack [stackSlots]openFrame
	table [1 << tableBits]slot
	// pairs holds the drop of spelled-out entries by caller and callee.
	pairs [1 << pairBits]uint32
	depth uint32
	last  uint64 // time of the last event that carried one
}

// hashMul scatters words; hashInverse undoes it (their product is 1 mod 2^32).
const (
	hashMul     = 0x9E3779B1
	hashInverse = 0x0E8B2F51
)

// seedOf is a hash of a word of which no two are equal, since the multiplier is
// odd. It stands for the word.
func seedOf(word uint32) uint32 { return word * hashMul }

// pathAfter adds a callee to a path; the one before the last three falls out.
func pathAfter(path, calleeSeed uint32) uint32 { return path<<9 + calleeSeed>>16 }

func (f *openFrame) slotIndex() uint32 {
	return (f.seed ^ f.path) * hashMul >> (32 - tableBits)
}

// isExit reports whether an exit with the seed is the frame's own. The words of
// an entry and its exit differ by one, so do their seeds by the multiplier.
func (f *openFrame) isExit(seed uint32) bool { return f.seed+hashMul == seed }

func pairIndex(callerSeed, word uint32) uint32 {
	return (callerSeed ^ word*0x85EBCA6B) * hashMul >> (32 - pairBits)
}

// learn makes the slot propose the event, if it is one that the stack explains:
// an entry further down, or the exit of the open frame itself. Jumps between
// stacks and unwinding stay spelled out, which keeps the fast path free of them.
func (s *slot) learn(word, drop uint32) {
	if word&1 == 0 && int32(drop) > 0 || word&1 != 0 && drop == 0 {
		s.word, s.drop = word, drop
	}
}

// learnDelta remembers a time delta, unless it is a wait: after one the next is
// short again.
func (s *slot) learnDelta(delta uint64) {
	if delta < maxLearned || delta-uint64(s.delta)+maxDrift < 2*maxDrift {
		s.delta = uint32(delta)
	}
}

// step follows an event that was proposed.
func (p *predictor) step(word, sp uint32) {
	seed := seedOf(word)
	top := &p.stack[p.depth%stackSlots]
	top.path = pathAfter(top.path, seed)
	p.stack[(p.depth+1)%stackSlots] = openFrame{sp: sp, seed: seed}
	p.depth += 1 - 2*(word&1)
}

// unwind follows a spelled-out event: frames that cannot be open any more are
// dropped, then an entry is pushed and a matching exit popped.
func (p *predictor) unwind(word, sp uint32) {
	exit := word & 1
	for range maxUnwind {
		top := &p.stack[p.depth%stackSlots]
		if top.seed == 0 || int32(sp-top.sp) < int32(exit) {
			break
		}
		p.depth--
	}
	top := &p.stack[p.depth%stackSlots]
	seed := seedOf(word)
	switch {
	case exit == 0:
		top.path = pathAfter(top.path, seed)
		p.depth++
		p.stack[p.depth%stackSlots] = openFrame{sp: sp, seed: seed}
	case top.isExit(seed) && top.sp == sp:
		p.depth--
	}
}

// noTime reports whether the mode's events with this word carry no time, so that
// Time is coded as such and not as a delta.
func (m ClockMode) noTime(word uint32) bool {
	return m == ClockNone || m == ClockExit && word&1 == 0
}
