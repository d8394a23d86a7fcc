package process

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// cpuid runs CPUID (Intel SDM vol. 2, CPUID).
func cpuid(leaf, subleaf uint32) (eax, ebx, ecx, edx uint32)

// The layout of the signal frame's vector state (struct _fpx_sw_bytes and
// around it in arch/x86/include/uapi/asm/sigcontext.h).
const (
	xstateLegacy   = 512           // the FXSAVE area
	xstateHeader   = 64            // XSTATE_BV, XCOMP_BV, reserved
	swReserved     = 464           // offset of the software bytes in the FXSAVE area
	fpXStateMagic1 = 0x46505853    // FP_XSTATE_MAGIC1
	fpXStateMagic2 = 0x46505845    // FP_XSTATE_MAGIC2, follows the state
	xfeatureAMX    = 1<<17 | 1<<18 // XTILECFG, XTILEDATA
	xfeatureLegacy = 1<<0 | 1<<1   // x87, SSE
	xstateAlign    = 64            // XRSTOR faults otherwise
)

var errXState = errors.New("unexpected vector state")

// frameXState makes the vector state of a signal frame from that of ptrace. The
// kernel restores all of it only if the sizes are what it would have written
// itself (check_xstate_in_sigframe in arch/x86/kernel/fpu/signal.c); else it
// restores the SSE part and clears the rest.
func frameXState(state []byte) ([]byte, error) {
	if len(state) < xstateLegacy+xstateHeader {
		return nil, fmt.Errorf("%w: %d bytes", errXState, len(state))
	}
	enabled := binary.LittleEndian.Uint64(state[swReserved:]) // XCR0, put there for debuggers
	inUse := binary.LittleEndian.Uint64(state[xstateLegacy:])
	features := enabled | xfeatureLegacy
	if inUse&xfeatureAMX == 0 {
		// Frames have no room for the tiles until the thread has used them.
		features &^= xfeatureAMX
	}
	size := xstateSize(features)
	if size > len(state) || inUse&^features != 0 {
		return nil, fmt.Errorf("%w: %d bytes for features %#x of %#x", errXState, len(state), features, inUse)
	}
	out := make([]byte, size+4)
	copy(out, state[:size])
	clear(out[swReserved:xstateLegacy])
	binary.LittleEndian.PutUint32(out[swReserved:], fpXStateMagic1)
	binary.LittleEndian.PutUint32(out[swReserved+4:], uint32(len(out)))
	binary.LittleEndian.PutUint64(out[swReserved+8:], features)
	binary.LittleEndian.PutUint32(out[swReserved+16:], uint32(size))
	binary.LittleEndian.PutUint32(out[size:], fpXStateMagic2)
	return out, nil
}

// xstateSize returns the bytes that features take in the standard format: the
// offsets differ between vendors (CPUID leaf 0DH, Intel SDM vol. 1 §13.4.3).
func xstateSize(features uint64) int {
	size := xstateLegacy + xstateHeader
	for i := uint32(2); i < 63; i++ {
		if features&(1<<i) == 0 {
			continue
		}
		length, offset, _, _ := cpuid(0xd, i)
		size = max(size, int(offset)+int(length))
	}
	return size
}
