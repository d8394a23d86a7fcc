package stub

import "encoding/binary"

// A gate is a word of the target's memory that stubs read before all else: as a signed number it is the address of the slots while the gate
// is open, and 0 or less while it is closed. It is 0 before recording, and in a child that was just forked, whose page is wiped.
//
// The recorder opens and closes gates while threads run, by writes through the kernel, which may become visible byte by byte, in any order.
// So it closes a gate by its highest byte alone, which makes it less than 0, and opens one by the other seven bytes first while it is.
// Stubs that close a gate write that byte alone, too: one that closes it while it is being opened can't leave half an address open.
const (
	GateTop  = 7 // of its bytes
	GateShut = 0x80
)

// Writer is the target's memory.
type Writer interface {
	WriteAt(buf []byte, addr uint64) (int, error)
}

// CloseGate closes the gate at an address.
func CloseGate(mem Writer, gate uint64) error {
	_, err := mem.WriteAt([]byte{GateShut}, gate+GateTop)
	return err
}

// OpenGate opens a closed gate with the address of the slots.
func OpenGate(mem Writer, gate, slots uint64) error {
	if err := CloseGate(mem, gate); err != nil {
		return err
	}
	word := binary.LittleEndian.AppendUint64(nil, slots)
	if _, err := mem.WriteAt(word[:GateTop], gate); err != nil {
		return err
	}
	_, err := mem.WriteAt(word[GateTop:], gate+GateTop)
	return err
}

// IsOpen says whether a gate is open that has this word in it.
func IsOpen(word [8]byte) bool { return int64(binary.LittleEndian.Uint64(word[:])) > 0 }

// What is behind the gate word, in the same page.
const (
	// GateOwn is where the address of the ring memory is, its gate open or closed: in the process that recording began
	// with. In its forked children it is 0, then one of those below.
	GateOwn = 8
	// GateStrange counts events that came before the child's own thread ID.
	GateStrange = 16
	// GateOpened counts the gates that a child has opened, in the page of Config.Anchor; their addresses follow, and a 0.
	GateOpened = 24
	GateList   = 32
)

// Values of GateOwn in a child: it has opened the gate, or gives it up.
const (
	GateChild = 1
	GateNever = 2
)

const (
	MaxOpened  = 500 // gates that GateList has space for
	MaxStrange = 256
)

// Values of ring.HdrFollow, besides 0 for not.
const FollowOn = 1

// A program without a C library may have no thread pointer, and nothing in its memory that tells one thread from another. There a
// thread on the program's first stack, which the kernel made and no other thread uses, is the one that recording found there; of
// every other stack's the kernel is asked (gettid), at each event: a stack may be given to another thread at any time, and nothing
// would say so.
//
// What is known of the first stack is at the end of the gate's page, behind the list of gates. In a forked child all of it is 0,
// so that the kernel is asked on each stack.
const (
	// GateThread is where the ID of the thread on the first stack is, GateStack where the lowest address of that stack, and
	// GateStackSize how many bytes it has: 8 bytes each, all 0 if nobody is known to be there.
	GateThread    = 4064
	GateStack     = 4072
	GateStackSize = 4080
)
