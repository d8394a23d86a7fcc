package plan

import (
	"context"
	"encoding/binary"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/discover"
)

// processor is what planning asks of an instruction set. What it finds out about symbols, call frame information, parts and landing pads is the
// same for all.
type processor struct {
	arch   object.Arch
	goarch string // Go's name for it
	// sp is the stack pointer's DWARF number, and fresh how far the canonical frame address is above it at a function's first instruction.
	sp    uint32
	fresh int64
	// frame is the DWARF number of the only other register by which a stack frame is told to be there; 0 if any tells it.
	frame uint32
	// search looks for functions that nothing names in the code.
	search func(im *Image, ctx context.Context) ([]discover.Function, error)
	// padded returns where what fills up a Go function begins.
	padded func(t *text, start, end uint64) uint64
	plan   func(im *Image, ctx context.Context) ([]Function, error)
}

// processorOf returns the one whose code the image has, nil if it can't be probed.
func processorOf(o *object.Image) *processor {
	if o.Format != object.ELF || o.Class != object.Class64 {
		return nil
	}
	switch o.Arch {
	case object.AMD64: // System V AMD64 ABI figure 3.36; the return address is on the stack
		return &processor{arch: o.Arch, goarch: "amd64", sp: 7, fresh: 8, search: (*Image).searchAMD64, padded: (*text).withoutPadding, plan: (*Image).plan}
	case object.ARM64: // DWARF for the Arm 64-bit Architecture §4.1; the return address is in a register
		if o.ByteOrder != binary.LittleEndian {
			return nil
		}
		return &processor{arch: o.Arch, goarch: "arm64", sp: 31, frame: 29, search: (*Image).searchARM64, padded: (*text).withoutZeros, plan: (*Image).planARM64}
	}
	return nil
}
