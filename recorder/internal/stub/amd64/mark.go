package amd64

import (
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// A marker is in a function's middle. What the function has below its stack pointer is its own there (System V AMD64 ABI §3.2.2), so the
// stack pointer goes down by that much before the event and up again behind it, by LEA, which changes no flags. All else is as
// at an entry: the event code keeps every register and flag, and touches neither the x87 unit nor vector registers.
//
// In front of a call that is led here instead, the return address is pushed already, and below that nothing is alive.
const redZone = 128

// belowMark is how far below the thread's stack pointer at a marker the event's is: a call that is open then has another one, so that when
// the event is dropped for want of room no exit is taken for that of a call that was dropped, see slowPath.dropEntry.
const belowMark = 8

// marks emits the events of markers before the i-th instruction of a site, which was at addr.
func (s *emitter) marks(site *plan.Site, addr uint64, i int) {
	if site.Role == plan.RoleMark {
		if i == int(site.Before) && s.fn.Import != nil {
			s.returned(addr)
		} else if i == int(site.Before) {
			s.stands(addr + s.fn.Slide)
			s.lang.mark(s.coder, s.fn.ID, 0)
		}
		return
	}
	for _, m := range s.fn.Marks {
		if m.Addr == addr {
			s.stands(addr + s.fn.Slide)
			s.lang.mark(s.coder, m.ID, 0)
		}
	}
}

func (cEvents) mark(c *coder, id uint32, pushed int32) {
	below := pushed
	if pushed == 0 {
		below = redZone
	}
	c.marking = id
	c.beginSwitch(false)
	c.marking = 0
	if pushed == 0 {
		c.lower(true)
	}
	e := &capturedEvent{coder: c, id: id, spDelta: below - belowMark, origin: below, off: c.NewLabel()}
	if p := c.cfg.Captures[id]; p != nil && p.Entry != nil && len(p.Entry.Fields) > 0 {
		e.capture, e.gather = p.Entry, c.routines.captures.gather[gatherKey{id, false}]
	}
	c.Store64(amd64.At(amd64.RSP, saveRAX), amd64.RAX)
	c.saveFlags(0)
	says := c.cfg.Says[id]
	if says == stub.SayPause {
		c.hold(true)
	}
	c.heedless = says != stub.SayNothing
	e.emit()
	c.heedless = false
	c.Place(e.off)
	if says == stub.SayResume {
		c.hold(false)
	}
	c.restore(0)
	if c.cfg.Predicates != 0 {
		for _, t := range c.cfg.MarkTriggers[id] {
			c.markTrigger(&t)
		}
	}
	if pushed == 0 {
		c.lower(false)
	}
	c.endSwitch()
}

// markTrigger appends a marker's part in a trigger, as predicates does for a call. What spans begin and end is the thread's, wherever its
// stack pointer is, so that is taken for 0; of spans of one name that are within one another the innermost counts.
func (c *coder) markTrigger(t *stub.MarkTrigger) {
	off := c.NewLabel()
	c.Store64(amd64.At(amd64.RSP, saveRAX), amd64.RAX)
	c.saveFlags(0)
	c.whileOn(amd64.RDX, off, off)
	call := func(routine uint64) {
		c.MovImm64(amd64.RCX, uint64(t.Predicates.Count)<<40|uint64(t.Predicates.First)<<32|uint64(word(t.Key, false)))
		c.MovImm32(amd64.RDX, 0)
		c.CallTo(routine)
	}
	if t.Begin {
		call(c.routines.predicates.enter)
	}
	if t.End {
		call(c.routines.predicates.leave)
	}
	c.Place(off)
	c.restore(0)
}

// hasMarks says whether any of the functions is a marker, or has one in it.
func hasMarks(fns []stub.Probe) bool {
	for i := range fns {
		if fns[i].IsMark() || len(fns[i].Marks) > 0 {
			return true
		}
	}
	return false
}
