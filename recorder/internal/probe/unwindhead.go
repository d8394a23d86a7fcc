package probe

import "encoding/binary"

// FramesHead is the room at an arena's beginning for .eh_frame_hdr and .eh_frame; at its end stands what FramesGuard returns.
const (
	FramesHead = 4096
	guardAt    = FramesHead - 8
)

// FramesGuard returns the address of the site by which the unwind information of stubs is found, 0 if there is none in this arena. head
// is the arena's beginning.
func FramesGuard(head *[FramesHead]byte) uint64 { return binary.LittleEndian.Uint64(head[guardAt:]) }

// MaxFrames is how many arenas unwinders can be told of.
const MaxFrames = 64

// FrameEntry is the size of an entry of the list of arenas: address and size, 8 bytes each; one of address 0 ends it.
const FrameEntry = 16
