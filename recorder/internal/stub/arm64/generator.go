package arm64

import (
	"encoding/binary"
	"fmt"

	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// Generator makes the code of stubs for AArch64. It has no state.
type Generator struct{}

// Bound is how many bytes the code of these functions has at most.
func (Generator) Bound(cfg *stub.Config, fns []stub.Probe) uint64 {
	const (
		rows     = unwindRowSize
		routines = 1 << 14
		lower    = 1 << 10       // of a distance that entries' stack pointers have moved by
		moved    = 64            // alignment, the instruction, its way back
		shared   = 48            // an event by a shared routine
		inline   = 352           // one inline
		hook     = 256           // a look at arguments, and another event
		kept     = 512 + 14*rows // what is kept of arguments, or carried
		held     = 128 + 8*rows  // predicates
		marked   = 512 + 16*rows // the event of a marker, and what it says
	)
	b := uint64(routines + stub.UnwindHead)
	event := uint64(shared)
	if len(fns) <= InlineLimit || cfg.Go != nil {
		event = inline
	}
	if cfg.Chooses() {
		event += 64
	}
	if cfg.Inside {
		event = max(event, inline+64)
	}
	if cfg.Predicates != 0 {
		event += held
	}
	if cfg.Min && len(fns) <= InlineLimit {
		event += takeBackSize
	}
	usual := event
	triggers := uint64(0)
	for _, list := range cfg.MarkTriggers {
		triggers = max(triggers, (held+64)*uint64(len(list)))
	}
	var deltas [1 << 8]bool
	for i := range fns {
		event := usual
		if _, keeps := cfg.Keeps[fns[i].ID]; keeps {
			event += inline + kept
		}
		b += (marked + triggers) * uint64(len(fns[i].Marks)+btoi(fns[i].IsMark()))
		if fns[i].Hook != plan.HookNone {
			b += hook + 8*rows + event + 5*rows
		}
		if fns[i].Import != nil {
			b += importSize + importRows*rows + event + 5*rows
			b += uint64(len(fns[i].Patched())) * (event + 5*rows) // the sites are where calls return to
		}
		for _, s := range fns[i].Patched() {
			b += moved + 3*rows + (event+5*rows)*uint64(btoi(s.Role == plan.RoleEntry)+s.Exits())
			if d := uint8(s.SPDelta >> 4); s.Role == plan.RoleEntry && !deltas[d] {
				deltas[d] = true
				b += 2 * lower // with x16 and x17 kept, or without
			}
		}
	}
	return b + boundCaptures(fns, cfg.Captures)
}

// boundCaptures is how many bytes the captures of some of these functions take besides.
func boundCaptures(fns []stub.Probe, captures map[uint32]*stub.Captures) uint64 {
	if len(captures) == 0 {
		return 0
	}
	const (
		routines = 1 << 13
		gather   = 256 // a routine, without its fields
		field    = 640 // of a routine
		pointer  = 96  // looked through on the way to it
		site     = 640 // an event, with what unwinders are told
		direct   = 64  // a field of it, and its payload event
		noted    = 192 // where the result is to go
	)
	b := uint64(routines)
	mark := func(id uint32) uint64 {
		c := captures[id]
		if c == nil || c.Entry == nil {
			return 0
		}
		return gather + site + (field+direct+pointer)*uint64(len(c.Entry.Fields))
	}
	for i := range fns {
		for _, m := range fns[i].Marks {
			b += mark(m.ID)
		}
		c := captures[fns[i].ID]
		if c == nil || fns[i].ID == 0 {
			continue
		}
		if c.Constant != nil {
			b += mark(c.Constant.Else)
		}
		fields := uint64(0)
		for _, capture := range []*stub.Capture{c.Entry, c.Return} {
			if capture == nil {
				continue
			}
			b += gather
			for k := range capture.Fields {
				f := &capture.Fields[k]
				fields++
				b += field + pointer*uint64(len(f.Value.Path)+len(f.Len.Path))
			}
			for k := range capture.Conditions {
				b += field + pointer*uint64(len(capture.Conditions[k].Value.Path))
			}
		}
		fields += uint64(len(c.Conditions))
		if c.NotesResult() {
			b += noted * uint64(1+len(fns[i].Patched()))
		}
		if fns[i].Import != nil {
			b += site + direct*fields
		}
		for _, s := range fns[i].Patched() {
			b += (site + direct*fields) * uint64(btoi(s.Role == plan.RoleEntry || s.Role == plan.RoleMark)+s.Exits()+btoi(fns[i].Import != nil))
		}
	}
	return b
}

// Compile makes the code for an arena at base. Its size does not depend on base. It keeps fns, whose images must stay open while it is in use.
// The code is put into buf if that is large enough, else elsewhere; buf may be nil.
func (Generator) Compile(base uint64, cfg stub.Config, fns []stub.Probe, buf []byte) (*stub.Code, error) {
	code, err := compile(base, cfg, fns, buf)
	if err != nil {
		return nil, err
	}
	return &code.Code, nil
}

// JumpOf returns where the b or bl leads that a patch writes; is is false for a patch that writes something else. The patch may be one that is
// read from the recovery record of a process.
func (Generator) JumpOf(p *stub.Patch) (to uint64, is bool) {
	code := p.New()
	if len(code) != 4 {
		return 0, false
	}
	switch w := binary.LittleEndian.Uint32(code); kindOf(w) {
	case jump, call_:
		return targetOf(w, p.Addr), true
	}
	return 0, false
}

// InsideOf says whether pc is inside displaced instructions: never, since a site is one.
func (code *Code) InsideOf(uint64) (id uint32, inside bool) { return 0, false }

// StubFor has nothing to return, for the same reason.
func (code *Code) StubFor(uint64) (uint64, bool) { return 0, false }

// Switches returns the events of a function: few are asked for, so its stubs are made once more.
func (code *Code) Switches(index int) ([]stub.Switch, error) {
	if code.fns[index].ID == 0 {
		return nil, nil
	}
	c := code.coder(code.Base+uint64(code.stubs[index]), nil)
	if err := (&emitter{coder: c, fn: &code.fns[index], index: uint32(index)}).function(); err != nil {
		return nil, err
	}
	b, err := c.Finish()
	if err != nil {
		return nil, fmt.Errorf("callreel: stubs: %w", err)
	}
	list := make([]stub.Switch, 0, len(c.switches))
	for i := range c.switches {
		s := &c.switches[i]
		on, off, unmade := s.words(at(b, s.start-code.stubs[index]))
		to := s.start &^ 7
		shift := 8 * (s.start - to)
		w := stub.Switch{At: to, Exit: s.exit, Mark: s.mark, Mask: 0xFF << (shift + 8*uint32(s.changes()))}
		w.On, w.Off = uint64(on)<<shift&w.Mask, uint64(off)<<shift&w.Mask
		if s.unmade {
			w.Unmade = uint64(unmade) << shift & w.Mask
		}
		list = append(list, w)
	}
	return list, nil
}

// first is the offset in the arena of the code that the coder makes.
func (c *coder) first() uint32 { return uint32(c.Base() - c.base) }
