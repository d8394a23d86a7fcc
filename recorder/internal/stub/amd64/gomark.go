package amd64

import (
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// mark appends the event of a marker in a Go program: at the entry of a function of package mark, where R12, R13, R15 and the flags hold nothing.
// One whose string is none of the program's constants is the event of another marker, see stub.Constant.
func (g goEvents) mark(c *coder, id uint32, _ int32) {
	p := c.cfg.Captures[id]
	if p == nil || p.Constant == nil {
		g.captured(c, id, false, -belowMark, entryOf(p))
		g.markTriggers(c, id)
		return
	}
	k := p.Constant
	off, other, done := c.NewLabel(), c.NewLabel(), c.NewLabel()
	c.whileOn(amd64.R12, off, off)
	c.Lea(amd64.R12, amd64.AtAddr(k.From))
	c.Mov(amd64.R13, amd64.Reg(k.Reg))
	c.Sub(amd64.R13, amd64.R12)
	c.MovImm32(amd64.R12, uint32(k.Size))
	c.Cmp(amd64.R13, amd64.R12)
	c.Jcc(amd64.CondAE, other)
	g.captured(c, id, false, -belowMark, entryOf(p))
	c.Place(done)
	g.markTriggers(c, id)
	c.Place(off)
	c.cold = append(c.cold, func() {
		c.Place(other)
		g.captured(c, k.Else, false, -belowMark, entryOf(c.cfg.Captures[k.Else]))
		c.Jmp(done)
	})
}

// markTriggers appends the marker's part in triggers: of those that are about its passing, as what spans begin and end is known here by strings
// alone.
func (g goEvents) markTriggers(c *coder, id uint32) {
	if c.cfg.Predicates == 0 {
		return
	}
	for _, t := range c.cfg.MarkTriggers[id] {
		if t.Begin && t.End {
			g.predicates(c, t.Predicates, t.Key, false, 0)
			g.predicates(c, t.Predicates, t.Key, true, 0)
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
