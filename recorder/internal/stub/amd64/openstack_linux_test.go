package amd64

import (
	"testing"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// openEvent is event code that writes an entry only if its record was pushed, and an exit only if one was popped.
func (c *coder) openEvent(id uint32, exit bool) {
	off, slow := c.NewLabel(), c.NewLabel()
	c.Store64(amd64.At(amd64.RSP, saveRAX), amd64.RAX)
	c.saveFlags(0)
	routine := c.routines.open.push
	if exit {
		c.ifNoneOpen(off, 0)
		routine = c.routines.open.pop
	}
	c.MovImm32(amd64.RCX, word(id, false))
	c.Lea(amd64.RDX, amd64.At(amd64.RSP, 0))
	c.CallTo(routine)
	c.Test(amd64.RAX, amd64.RAX)
	c.Jcc(amd64.CondE, off)
	c.claim(off, slow)
	c.Store32(amd64.At(amd64.RCX, ring.EventSP), amd64.RSP)
	c.time(exit)
	c.Store32Imm(amd64.At(amd64.RCX, ring.EventWord), word(id, exit))
	c.Place(off)
	c.restore(0)
	c.cold = append(c.cold, func() {
		c.Place(slow)
		c.MovImm32(amd64.RCX, word(id, exit))
		c.Lea(amd64.RDX, amd64.At(amd64.RSP, 0))
		c.CallTo(c.routines.slow)
		c.Jmp(off)
	})
}

func TestTheOpenStackKeepsEveryRegister(t *testing.T) {
	d := startDriver(t, stubSetup{open: true, chunks: 64})
	d.doDraining("state %d", 3000)
	d.round()
	if n := d.drainer.Totals().Events; n < 20000 {
		t.Errorf("only %d events", n)
	}
}

// Handlers that come between any two instructions push and pop above the code they interrupt.
func TestEveryCallThatWasPushedIsPoppedUnderSignals(t *testing.T) {
	d := startDriver(t, stubSetup{open: true, chunks: 512})
	d.do("storm 37")
	d.doDraining("crowd 3 300000")
	d.do("storm 0")
	d.finish(expect{signals: true})
}

// What longjmp and exceptions leave on it goes when a call as high up comes, and never takes an exit that isn't its own.
func TestRecordsOfCallsThatWereLeftOtherwiseGo(t *testing.T) {
	d := startDriver(t, stubSetup{open: true})
	for range 3 * ring.MaxOpen {
		d.do("enter")
		d.do("forget") // as by longjmp
		d.do("calls 20")
	}
	made := uint64(d.number("made"))
	d.round()
	s := d.threads[0]
	if s.entries != made {
		t.Errorf("%d entries were recorded of %d", s.entries, made)
	}
	if s.unmatched != 0 || s.exits != made-3*ring.MaxOpen {
		t.Errorf("%d exits, %d of them without an entry, want %d", s.exits, s.unmatched, made-3*ring.MaxOpen)
	}
}
