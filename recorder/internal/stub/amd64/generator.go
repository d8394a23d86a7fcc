package amd64

import "github.com/callreel/callreel/recorder/internal/stub"

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
