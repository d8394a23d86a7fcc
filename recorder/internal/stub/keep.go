package stub

import (
	"encoding/binary"

	"github.com/callreel/callreel/recorder/internal/ring"
)

// A Keep lets the exits of calls that took long carry what their first arguments were. Those of other calls carry nothing: an entry only
// stores its arguments where the next one of its function's overwrites them. It is for functions that are called very often and seldom
// wait, and whose arguments are of interest only if they did.
type Keep struct {
	// Least is how long a call takes at least whose exit carries them, in ticks, below 1<<32.
	Least uint32
	// Second says that the second argument is kept, too.
	Second bool
	// Slot is below ring.KeptSlots. Functions whose calls are made in one another should have different ones.
	Slot uint8
}

// Events is how many payload events it takes.
func (k Keep) Events() int {
	if k.Second {
		return ring.KeptEvents + 1
	}
	return ring.KeptEvents
}

// Kept is what the exit of a call carries.
type Kept struct {
	Start  uint64    // ticks, of the entry
	Args   [2]uint64 // 0 for what isn't kept
	sp     uint32
	word   uint32
	Second bool
}

// DecodeKept reads a payload. What the target wrote may be anything: Of says whether it is of a call.
func DecodeKept(payload []byte) (k Kept, ok bool) {
	le := binary.LittleEndian
	switch len(payload) / ring.PayloadBytes {
	case ring.KeptEvents + 1:
		k.Second = true
		k.Args[1] = le.Uint64(payload[2*ring.PayloadBytes:])
	case ring.KeptEvents:
	default:
		return k, false
	}
	const second = ring.PayloadBytes
	k.Args[0], k.sp = le.Uint64(payload), le.Uint32(payload[8:])
	k.Start, k.word = le.Uint64(payload[second:]), le.Uint32(payload[second+8:])
	return k, true
}

// Of says whether it is of the call whose exit has that time, stack pointer and word: a signal handler may have called the same function, or
// written events between the exit and what it carries.
func (k *Kept) Of(time uint64, sp, word uint32) bool {
	return k.sp == sp && k.word == word && k.Start != 0 && k.Start <= time
}
