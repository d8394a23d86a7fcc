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
	return Bound(cfg, fns) + BoundCaptures(fns, cfg.Captures)
}

// Compile is the function of that name.
func (Generator) Compile(base uint64, cfg stub.Config, fns []stub.Probe, buf []byte) (*stub.Code, error) {
	code, err := Compile(base, cfg, fns, buf)
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
