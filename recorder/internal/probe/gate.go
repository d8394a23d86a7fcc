package probe

import "encoding/binary"

// A gate is a word of the target's memory that stubs read before all else: as a signed number it is the address of the slots while the gate
// is open, and 0 or less while it is closed. It is 0 before recording, and in a child that was just forked, whose page is wiped.
//
// The recorder opens and closes gates while threads run, by writes through the kernel, which may become visible byte by byte, in any order.
// So it closes a gate by its highest byte alone, which makes it less than 0, and opens one by the other seven bytes first while it is.
// Stubs that close a gate write that byte alone, too: one that closes it while it is being opened can't leave half an address open.
const (
	gateTop  = 7 // of its bytes
	gateShut = 0x80
)

// Writer is the target's memory.
type Writer interface {
	WriteAt(buf []byte, addr uint64) (int, error)
}

// CloseGate closes the gate at an address.
func CloseGate(mem Writer, gate uint64) error {
	_, err := mem.WriteAt([]byte{gateShut}, gate+gateTop)
	return err
}

// OpenGate opens a closed gate with the address of the slots.
func OpenGate(mem Writer, gate, slots uint64) error {
	if err := CloseGate(mem, gate); err != nil {
		return err
	}
	word := binary.LittleEndian.AppendUint64(nil, slots)
	if _, err := mem.WriteAt(word[:gateTop], gate); err != nil {
		return err
	}
	_, err := mem.WriteAt(word[gateTop:], gate+gateTop)
	return err
}

// IsOpen says whether a gate is open that has this word in it.
func IsOpen(word [8]byte) bool { return int64(binary.LittleEndian.Uint64(word[:])) > 0 }
