package arm64

import (
	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// A marker is in a function's middle, where there may be something in x16 and x17, which are kept on the stack: nothing below the stack pointer is
// the program's (AAPCS64 §6.4.6.1). All else is as at an entry: the event's code keeps every register and flag.

// belowMark is how far below the thread's stack pointer at a marker the event's is: a call that is open then has another one.
const belowMark = 8

// keptAtMark is where a marker has kept x16 or x17, from the event's stack pointer on.
func keptAtMark(r isa.Reg) int32 { return belowMark - pairSize + 8*int32(r-x16) }

// origin is what stub.OriginStack is above the stack pointer where nothing is kept.
func (p place) origin() int32 {
	if p.mark {
		return p.spDelta + belowMark
	}
	return p.spDelta
}

// marksAt are the IDs of the markers before the instruction of a site.
func (s *emitter) marksAt(site *plan.Site) (ids []uint32) {
	if site.Role == plan.RoleMark && s.fn.Import == nil {
		return []uint32{s.fn.ID}
	}
	for _, m := range s.fn.Marks {
		if m.Addr == site.Addr {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// mark appends a marker's event, and what it says to the recording: a pause comes before it, and the end of one behind.
func (c *coder) mark(id uint32) {
	if c.cfg.Go != nil {
		c.goMark(id)
		return
	}
	off := c.NewLabel()
	p := place{id: id, spDelta: -belowMark, mark: true}
	says := c.cfg.Says[id]
	c.push(x16, x17)
	if says == stub.SayPause {
		c.hold(true)
	}
	c.heedless = says != stub.SayNothing
	c.switchTest(p, off)
	c.behindGate(off)
	c.heedless = false
	c.written(p, entryOf(c.cfg.Captures[id]), off)
	c.Place(off)
	if says == stub.SayResume {
		c.hold(false)
	}
	if c.cfg.Predicates != 0 {
		for _, t := range c.cfg.MarkTriggers[id] {
			c.markTrigger(&t)
		}
	}
	c.pop(x16, x17)
}

// markTrigger appends a marker's part in a trigger, as predicates does for a call. What spans begin and end is the thread's, wherever its
// stack pointer is, so that is taken for 0; of spans of one name that are within one another the innermost counts.
func (c *coder) markTrigger(t *stub.MarkTrigger) {
	off := c.NewLabel()
	c.whileOn(off)
	call := func(routine uint64) {
		c.MovImm(x16, uint64(t.Predicates.Count)<<predicateCount|uint64(t.Predicates.First)<<predicateFirst|uint64(word(t.Key, false)))
		c.push(lr, zr)
		c.Movz(x17, 0, 0)
		c.BlTo(routine)
		c.pop(lr, zr)
	}
	if t.Begin {
		call(c.routines.predicates[0])
	}
	if t.End {
		call(c.routines.predicates[1])
	}
	c.Place(off)
}

// hold appends the stores by which the process pauses its recording, or lets it go on. A forked child that isn't followed has the ring's header,
// but no business there: its gate's page, which is wiped, tells. x16 and x17 are clobbered.
func (c *coder) hold(on bool) {
	child := c.NewLabel()
	value := zr
	if on {
		value = x16
		c.Movz(x16, 1, 0)
	}
	if c.cfg.Held != 0 {
		c.MovImm(x17, c.cfg.Held)
		c.Store(1, value, arm64.At(x17, 0))
		c.MovImm(x17, c.cfg.Ring+ring.SlotsOff)
	} else {
		c.loadAt(x17, c.cfg.Gate+stub.GateOwn)
		c.Cbz(x17, child)
		c.AddImm(x17, x17, ring.SlotsOff)
		c.Store(1, value, arm64.At(x17, ring.PausedOff-ring.SlotsOff+ring.PausedSelf))
	}
	if !on {
		c.Store(1, zr, arm64.At(x17, ring.PausedOff-ring.SlotsOff+ring.PausedAtFirst))
	}
	c.Place(child)
}
