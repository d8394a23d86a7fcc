package arm64

import (
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// goMark appends the event of a marker in a Go program: at the entry of a function of package mark, where nothing is in the registers of events. One
// whose string is none of the program's constants is the event of another marker, see stub.Constant.
func (c *coder) goMark(id uint32) {
	of := func(id uint32) place { return place{id: id, spDelta: -belowMark, mark: true} }
	p := c.cfg.Captures[id]
	if p == nil || p.Constant == nil {
		c.goCaptured(of(id), entryOf(p))
		c.goMarkTriggers(id)
		return
	}
	k := p.Constant
	off, other, done := c.NewLabel(), c.NewLabel(), c.NewLabel()
	c.unlessOff(off)
	c.MovImm(x16, k.From)
	c.Sub(x17, k.Reg, x16)
	c.MovImm(x16, k.Size)
	c.Cmp(x17, x16)
	c.BCond(arm64.CondHS, other)
	c.goCaptured(of(id), entryOf(p))
	c.Place(done)
	c.goMarkTriggers(id)
	c.Place(off)
	c.cold = append(c.cold, func() {
		c.Place(other)
		c.goCaptured(of(k.Else), entryOf(c.cfg.Captures[k.Else]))
		c.B(done)
	})
}

// goMarkTriggers appends the marker's part in triggers: of those that are about its passing, as what spans begin and end is known here by strings
// alone.
func (c *coder) goMarkTriggers(id uint32) {
	if c.cfg.Predicates == 0 {
		return
	}
	for _, t := range c.cfg.MarkTriggers[id] {
		if t.Begin && t.End {
			c.goPredicates(place{id: t.Key}, t.Predicates)
			c.goPredicates(place{id: t.Key, exit: true}, t.Predicates)
		}
	}
}

// entryOf is the capture of a marker, nil for none.
func entryOf(p *stub.Captures) *stub.Capture {
	if p == nil || p.Entry == nil || len(p.Entry.Fields) == 0 {
		return nil
	}
	return p.Entry
}

// goSays appends what a Go program's functions do at their entry that pause its recording, or let it go on: what hold does, and a marker's event.
func (c *coder) goSays(h plan.Hook) {
	pause := h == plan.HookPause
	id := c.cfg.GoSays[btoi(!pause)]
	if id == 0 {
		return
	}
	if pause {
		c.hold(true)
	}
	c.heedless = true
	c.goEvent(place{id: id, spDelta: -belowMark})
	c.heedless = false
	if !pause {
		c.hold(false)
	}
}
