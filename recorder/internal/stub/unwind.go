package stub

import "encoding/binary"

// UnwindHead is how many bytes an arena begins with for .eh_frame_hdr and .eh_frame; at its end is what UnwindHook returns.
const (
	UnwindHead = 4096
	HookAt     = UnwindHead - 8
)

// UnwindHook returns the address of the site by which the unwind information of stubs is found, 0 if there is none in this arena. head
// is the arena's beginning.
func UnwindHook(head *[UnwindHead]byte) uint64 { return binary.LittleEndian.Uint64(head[HookAt:]) }

// MaxUnwindEntries is how many arenas unwinders can be told of.
const MaxUnwindEntries = 64

// UnwindEntry is the size of an entry of the list of arenas: address and size, 8 bytes each; one of address 0 ends it.
const UnwindEntry = 16
