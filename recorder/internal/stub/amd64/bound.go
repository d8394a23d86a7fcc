package amd64

import (
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// bound is how many bytes the code of these functions has at most, see compile: three to five times what it has in fact, but
// known without making it. cfg is as for Compile, but for addresses.
func bound(cfg *stub.Config, fns []stub.Probe) uint64 {
	const routines = 1 << 16
	b := boundStubs(cfg, fns, len(fns) <= InlineLimit)
	return routines + b.code + b.rows*unwindRowSize
}

// bounds is what the stubs of some functions have at most.
type bounds struct {
	code    uint64 // bytes
	rows    uint64 // of unwind information
	patches int
}

// boundStubs finds the bounds. inlined says whether events are inline in all stubs.
func boundStubs(cfg *stub.Config, fns []stub.Probe, inlined bool) (b bounds) {
	// An event, or a look at arguments, where it isn't the call of a routine.
	inline := uint64(256)
	if cfg.Min {
		inline += 340
	}
	if cfg.Chooses() || cfg.Threads {
		inline += 128
	}
	if cfg.Follow {
		inline += 64 // see unlessHeld
	}
	triggers := uint64(0) // of a marker, at most
	for _, list := range cfg.MarkTriggers {
		triggers = max(triggers, markTriggerSize*uint64(len(list)))
	}
	const (
		site   = 56  // alignment, the entry event's call, the way back
		longer = 8   // than the original is a jump in the stub
		exit   = 44  // an exit event's padding and call, and the jump to where the exit leads
		golang = 272 // an event in a Go program, which is always inline
		says   = 32  // what a marker says to the recording
		marked = 6   // rows of unwind information for the event of a marker
	)
	for i := range fns {
		f := &fns[i]
		sites := f.Patched()
		b.code += (inline + exit + says + triggers) * uint64(len(f.Marks))
		b.rows += marked * uint64(len(f.Marks))
		if f.Import != nil {
			b.code += site + importSize + inline
			b.rows += importRows
		}
		for k := range sites {
			s := &sites[k]
			b.patches += 1 + btoi(s.Island != 0)
			exits := uint64(s.Exits())
			b.code += site + uint64(s.Size) + longer*uint64(s.Count) + exit*exits
			b.rows += 2 + uint64(s.Count) + 2*exits
			switch {
			case f.Image.Go != nil:
				b.code += golang * (1 + exits)
			case inlined || f.Inside:
				b.code += inline * (1 + exits)
			}
			if s.SPDelta != 0 || s.Role == plan.RoleMark {
				b.code += inline + says*uint64(btoi(s.Role == plan.RoleMark))
			}
			b.code += triggers * uint64(btoi(s.Role == plan.RoleMark))
			b.rows += marked * uint64(btoi(s.Role == plan.RoleMark))
			if s.Role == plan.RoleEntry && f.Hook != plan.HookNone {
				b.code += inline
			}
		}
	}
	return b
}

// boundCaptures is how many bytes the captures of some of these functions take besides.
func boundCaptures(fns []stub.Probe, captures map[uint32]*stub.Captures) uint64 {
	if len(captures) == 0 {
		return 0
	}
	const (
		routines = 1 << 14
		gather   = 256 // a routine, without its fields
		field    = 512 // of a routine
		pointer  = 64  // looked through on the way to it
		site     = 512 // an event
		direct   = 32  // a field of it, and its payload event
	)
	b := uint64(routines)
	for i := range fns {
		for _, m := range fns[i].Marks {
			b += boundMark(captures[m.ID])
		}
		c := captures[fns[i].ID]
		if c == nil || fns[i].ID == 0 {
			continue
		}
		if fns[i].IsMark() {
			b += boundMark(c)
			if c.Constant != nil {
				b += boundMark(captures[c.Constant.Else])
			}
			continue
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
		}
		fields += 4 * uint64(len(c.Conditions)+btoi(len(c.Conditions) > 0))
		b += (site + direct*fields) * uint64(btoi(fns[i].Import != nil))
		for _, s := range fns[i].Patched() {
			b += (site + direct*fields) * uint64(1+s.Exits())
		}
	}
	return b
}

// markTriggerSize is how many bytes a marker's part in a trigger takes.
const markTriggerSize = 200

// boundMark is how many bytes the captures of a marker take.
func boundMark(c *stub.Captures) uint64 {
	if c == nil || c.Entry == nil {
		return 0
	}
	const (
		all   = 1024 // the routine, and the event
		field = 640
	)
	return all + field*uint64(len(c.Entry.Fields))
}
