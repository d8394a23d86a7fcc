package amd64

import (
	"encoding/binary"

	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// Generator makes the code of stubs for x86-64. It has no state.
type Generator struct{}

// Bound is how many bytes the code of these functions has at most, their captures included. cfg is as for Compile, but for addresses.
func (Generator) Bound(cfg *stub.Config, fns []stub.Probe) uint64 {
	return bound(cfg, fns) + boundCaptures(fns, cfg.Captures)
}

// Span is all that the images occupy, from lo to hi: instructions that run in stubs may address any of it.
func (Generator) Span(_ []stub.Probe, lo, hi uint64) (from, to uint64) { return lo, hi }

// Compile makes the code for an arena at base. Its size does not depend on base. It keeps fns, whose images must stay open while it is in use.
// The code is put into buf if that is large enough, else elsewhere; buf may be nil.
func (Generator) Compile(base uint64, cfg stub.Config, fns []stub.Probe, buf []byte) (*stub.Code, error) {
	code, err := compile(base, cfg, fns, buf)
	if err != nil {
		return nil, err
	}
	return &code.Code, nil
}

// JumpOf returns where the jump with 32 bits of displacement leads that a patch writes; is is false for a patch that writes something else.
// The patch may be one that is read from the recovery record of a process.
func (Generator) JumpOf(p *stub.Patch) (to uint64, is bool) {
	code := p.New()
	if len(code) != plan.NearJump {
		return 0, false
	}
	return p.Addr + plan.NearJump + uint64(int64(int32(binary.LittleEndian.Uint32(code[1:])))), true
}
