package amd64

import (
	"slices"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// An event with a payload is claimed together with it by one XADD, and its own word is stored last of all: so whoever sees the event
// sees the payload. What is left of a chunk may be less than that; the XADD has then claimed all of it, and it is filled with events
// that say nothing before the slow path takes another chunk. Up to then the drainer waits there as it does at any event that is claimed
// and not yet written.

// captures returns the function's captures, nil if it has none.
func (s *emitter) captures() *stub.Captures {
	if s.fn.ID == 0 || len(s.cfg.Captures) == 0 {
		return nil
	}
	return s.cfg.Captures[s.fn.ID]
}

// captured appends an event of a function that has captures: one with a payload, if there is one for this event, and only of a call for
// which the function's conditions hold.
func (cEvents) captured(c *coder, id uint32, exit bool, spDelta int32, capture *stub.Capture) {
	p := c.cfg.Captures[id]
	gather := c.routines.captures.gather[gatherKey{id, exit}]
	c.beginSwitch(exit)
	defer c.endSwitch()
	e := &capturedEvent{coder: c, id: id, exit: exit, spDelta: spDelta, origin: spDelta, capture: capture, gather: gather, off: c.NewLabel()}
	if c.cfg.Lazy && !exit {
		c.slots = append(c.slots, entrySlot{id: id, start: c.offset(), made: true})
	}
	c.Store64(amd64.At(amd64.RSP, saveRAX), amd64.RAX)
	skip, onlyFlags := c.NewLabel(), len(p.Conditions) > 0 && !exit
	now := exit || capture == nil || len(capture.Conditions) == 0 // else what gathers values decides
	if onlyFlags {
		e.conditions(p.Conditions, skip)
	} else {
		c.saveFlags(0)
	}
	switch {
	case p.Chosen() && now:
		e.ofOpen()
	case p.Chosen():
	case c.cfg.Chooses():
		c.choose(exit, spDelta, func() {
			w := word(id, false)
			if c.cfg.Inside && c.inside {
				w |= recordInside
			}
			c.MovImm32(amd64.RCX, w)
		}, e.off)
	}
	e.emit()
	c.Place(e.off)
	c.restore(0)
	if onlyFlags {
		done := c.NewLabel()
		c.Place(done)
		later := c.later()
		c.cold = append(c.cold, func() {
			later()
			c.Place(skip)
			c.AddALImm(0x7F) // see restore
			c.Sahf()
			c.Load64(amd64.RAX, amd64.At(amd64.RSP, saveRAX))
			c.Jmp(done)
		})
	}
}

// capturedEvent is one being made.
type capturedEvent struct {
	*coder
	id      uint32
	exit    bool
	spDelta int32
	origin  int32         // what stub.OriginStack is above the stack pointer
	capture *stub.Capture // nil for none
	gather  uint64
	off     amd64.Label
}

// emit appends the event itself, everything being saved.
func (e *capturedEvent) emit() {
	c := e.coder
	if e.capture != nil && !e.capture.Inline() {
		c.throughGate(e.off)
		e.gatherSlowly()
		return
	}
	slow := c.NewLabel()
	if e.capture == nil {
		c.claim(e.off, slow)
	} else {
		c.claimAll(e.capture.Events(), e.off, slow)
		c.storeDirect(e.capture, e.origin)
	}
	c.Lea(amd64.RAX, amd64.At(amd64.RSP, e.spDelta))
	c.Store32(amd64.At(amd64.RCX, ring.EventSP), amd64.RAX)
	c.time(e.exit)
	c.Store32Imm(amd64.At(amd64.RCX, ring.EventWord), word(e.id, e.exit))
	later := c.later()
	c.cold = append(c.cold, func() {
		later()
		c.Place(slow)
		if e.capture != nil {
			c.fillRest()
			e.gatherSlowly()
		} else {
			c.MovImm32(amd64.RCX, word(e.id, e.exit))
			c.Lea(amd64.RDX, amd64.At(amd64.RSP, e.spDelta))
			c.CallTo(c.routines.slow)
		}
		c.Jmp(e.off)
	})
}

// gatherSlowly appends the way by the slow path.
func (e *capturedEvent) gatherSlowly() {
	c := e.coder
	c.threadID(amd64.RAX)
	c.Shl32Imm(amd64.RAX, 3)
	c.Lea(amd64.RDX, amd64.AtAddr(e.gather))
	c.Store64(amd64.At(amd64.RSP, saveGather), amd64.RDX)
	c.Lea(amd64.RDX, amd64.At(amd64.RSP, e.origin))
	c.Store64(amd64.At(amd64.RSP, saveEntry), amd64.RDX)
	if e.origin != e.spDelta {
		c.Lea(amd64.RDX, amd64.At(amd64.RSP, e.spDelta))
	}
	c.MovImm32(amd64.RCX, word(e.id, e.exit))
	c.CallTo(c.routines.captures.slow)
}

// claimAll appends the claim of an event and n payload events: RCX becomes the event's address. It jumps to slow with RCX the claim
// word that was there if there is no space for all.
func (c *coder) claimAll(n int, off, slow amd64.Label) {
	c.throughGate(off)
	c.MovImm64(amd64.RCX, uint64(n+1)*ring.Claim)
	c.Xadd64(amd64.AtIndex(amd64.RDX, amd64.RAX, 8, ring.SlotClaim), amd64.RCX)
	c.Mov(amd64.RAX, amd64.RCX)
	c.SarImm(amd64.RAX, ring.ClaimShift)
	c.Lea(amd64.RAX, amd64.At(amd64.RAX, int32(n)))
	c.Test(amd64.RAX, amd64.RAX)
	c.Jcc(amd64.CondNS, slow)
	c.addressOf(amd64.RCX)
}

// fillRest appends the filling of what was left when the claim word was RCX. RAX, RCX and flags are clobbered.
func (c *coder) fillRest() {
	next, none := c.NewLabel(), c.NewLabel()
	c.Mov(amd64.RAX, amd64.RCX)
	c.SarImm(amd64.RAX, ring.ClaimShift)
	c.addressOf(amd64.RCX)
	c.Test(amd64.RAX, amd64.RAX)
	c.Place(next)
	c.Jcc(amd64.CondNS, none)
	c.Store32Imm(amd64.At(amd64.RCX, ring.EventWord), ring.PayloadWord)
	c.Lea(amd64.RCX, amd64.At(amd64.RCX, ring.EventSize))
	c.Lea(amd64.RAX, amd64.At(amd64.RAX, 1))
	c.Test(amd64.RAX, amd64.RAX)
	c.Jmp(next)
	c.Place(none)
}

// storeDirect appends the payload of the event at RCX, out of registers. RAX is clobbered.
func (c *coder) storeDirect(capture *stub.Capture, spDelta int32) {
	n := capture.Events()
	for _, i := range capture.Direct() {
		f := &capture.Fields[i]
		o := &f.Value
		at := amd64.At(amd64.RCX, int32(ring.EventSize*(1+f.Place()/ring.PayloadBytes)+f.Place()%ring.PayloadBytes))
		wide := o.Wide()
		if o.Origin == stub.OriginVector {
			if wide {
				c.StoreX64(at, o.Vector)
			} else {
				c.StoreX32(at, o.Vector)
			}
			continue
		}
		r := amd64.Reg(o.Reg)
		if o.Memory {
			c.loadSafe(o, spDelta)
			r = amd64.RAX
		} else if o.Origin == stub.OriginStack {
			c.Lea(amd64.RAX, amd64.At(amd64.RSP, spDelta))
			r = amd64.RAX
		} else if r == amd64.RAX || r == amd64.RCX || r == amd64.RDX {
			off, _ := savedAt(r)
			c.Load64(amd64.RAX, amd64.At(amd64.RSP, off))
			r = amd64.RAX
		}
		if wide {
			c.Store64(at, r)
		} else {
			c.Store32(at, r)
		}
	}
	for i := range n {
		c.Store32Imm(amd64.At(amd64.RCX, int32(ring.EventSize*(1+i)+ring.EventWord)), payloadWord(i, n))
	}
}

// loadSafe appends the loading of what is in memory that is safe to be read into RAX. The stack pointer is spDelta below the one that
// stub.OriginStack means.
func (c *coder) loadSafe(o *stub.Operand, spDelta int32) {
	from := amd64.At(amd64.RSP, spDelta+o.Off)
	if o.Origin == stub.OriginAddress {
		c.MovImm64(amd64.RAX, o.Addr+uint64(int64(o.Off)))
		from = amd64.At(amd64.RAX, 0)
	}
	switch o.Size {
	case 1:
		c.Load8(amd64.RAX, from)
	case 2:
		c.Load16(amd64.RAX, from)
	case 4:
		c.Load32(amd64.RAX, from)
	default:
		c.Load64(amd64.RAX, from)
	}
}

// payloadWord is the word of the i-th of n payload events.
func payloadWord(i, n int) uint32 {
	return ring.PayloadWord | uint32(i)<<ring.PayloadIndexShift | uint32(n)<<ring.PayloadCountShift
}

// gatherValues calls what gathers the payload, into the thread's argument buffer. Without an event to be written it goes to unblock.
func (s *slowPath) gatherValues() {
	s.args(amd64.R12)
	toSaved := int32(8*len(saved)) - saveEntry // from the stack pointer here, without the mask's place, to S
	if s.lang.handlersWrite {
		toSaved += maskSize
	}
	if s.cfg.Clock != stub.ClockNone { // the time that gathering takes is not the call's
		s.Rdtsc()
		s.Store32(inArgs(ring.ArgsTime), amd64.RAX)
		s.Store32(inArgs(ring.ArgsTime+4), amd64.RDX)
	}
	s.Load64(amd64.RAX, amd64.At(amd64.RSP, toSaved+saveGather))
	s.CallReg(amd64.RAX)
	if s.cfg.Areas == 0 || !s.lang.callsStay {
		return
	}
	s.CmpMem64Imm8(inArgs(ring.ArgsCount), 0)
	s.Jcc(amd64.CondL, s.unblock)
	s.CmpMem64Imm8(inArgs(ring.ArgsOpen), 0)
	s.Jcc(amd64.CondE, s.claim)
	s.Test(amd64.R13, amd64.R13)
	s.Jcc(amd64.CondNE, s.claim) // it has been pushed, and has waited for space since
	s.Mov32(amd64.RCX, amd64.RBX)
	s.Mov(amd64.RDX, amd64.RBP)
	s.CallTo(s.routines.open.push)
	s.Test(amd64.RAX, amd64.RAX)
	s.Jcc(amd64.CondNE, s.claim)
	s.IncMem(s.slot(ring.SlotDropped))
	s.Jmp(s.unblock)
}

// claimWithPayload claims an event and what is in the thread's argument buffer. Nothing comes in between: signals are blocked, or write none.
func (s *slowPath) claimWithPayload() {
	enough := s.NewLabel()
	claim := s.slot(ring.SlotClaim)
	s.args(amd64.R12)
	s.Load64(amd64.RCX, claim)
	s.Test(amd64.RCX, amd64.RCX)
	s.Jcc(amd64.CondNS, s.register)
	s.Load64(amd64.RSI, inArgs(ring.ArgsCount))
	s.Mov(amd64.RAX, amd64.RCX)
	s.SarImm(amd64.RAX, ring.ClaimShift)
	s.Add(amd64.RAX, amd64.RSI)
	s.Test(amd64.RAX, amd64.RAX)
	s.Jcc(amd64.CondS, enough)
	s.fillRest()
	s.Jmp(s.register)
	s.Place(enough)
	s.Lea(amd64.RAX, amd64.At(amd64.RSI, 1))
	s.Mov(amd64.RDI, amd64.RAX)
	s.ShlImm(amd64.RAX, ring.ClaimShift)
	s.ShlImm(amd64.RDI, 4) // times ring.EventSize
	s.Or(amd64.RAX, amd64.RDI)
	s.AddToMem(claim, amd64.RAX)
	s.addressOf(amd64.RCX)
}

// withoutPayload is before the writing of an event into spare chunk, which is for exits alone.
func (s *slowPath) withoutPayload() {
	s.args(amd64.R12)
	s.Store64Imm(inArgs(ring.ArgsCount), 0)
}

// writePayload writes what is in the thread's argument buffer behind the event at RCX.
func (s *slowPath) writePayload() {
	next, none := s.NewLabel(), s.NewLabel()
	s.Load64(amd64.RSI, inArgs(ring.ArgsCount))
	s.Test(amd64.RSI, amd64.RSI)
	s.Jcc(amd64.CondE, none)
	s.Mov(amd64.R10, amd64.RSI)
	s.ShlImm(amd64.R10, ring.PayloadCountShift)
	s.MovImm32(amd64.RAX, ring.PayloadWord)
	s.Or(amd64.R10, amd64.RAX)
	s.Lea(amd64.RDI, inArgs(ring.ArgsData))
	s.Lea(amd64.RDX, amd64.At(amd64.RCX, ring.EventSize))
	s.Place(next)
	s.Load64(amd64.RAX, amd64.At(amd64.RDI, 0))
	s.Store64(amd64.At(amd64.RDX, 0), amd64.RAX)
	s.Load32(amd64.RAX, amd64.At(amd64.RDI, 8))
	s.Store32(amd64.At(amd64.RDX, 8), amd64.RAX)
	s.Store32(amd64.At(amd64.RDX, ring.EventWord), amd64.R10)
	s.Lea(amd64.R10, amd64.At(amd64.R10, 1<<ring.PayloadIndexShift))
	s.Lea(amd64.RDI, amd64.At(amd64.RDI, ring.PayloadBytes))
	s.Lea(amd64.RDX, amd64.At(amd64.RDX, ring.EventSize))
	s.Lea(amd64.RSI, amd64.At(amd64.RSI, -1))
	s.Test(amd64.RSI, amd64.RSI)
	s.Jcc(amd64.CondNE, next)
	s.Place(none)
}

// timeBefore replaces the time of a return's event at RCX by that of before its values were gathered.
func (s *slowPath) timeBefore() {
	entry := s.NewLabel()
	s.TestALImm(amd64.RBX, 1)
	s.Jcc(amd64.CondE, entry)
	s.Load64(amd64.RAX, inArgs(ring.ArgsTime))
	s.Store64(amd64.At(amd64.RCX, ring.EventTime), amd64.RAX)
	s.Place(entry)
}

// goPayload appends the call of the slow path of events with a payload, with the word in RCX and the event's SP in RDX, out of
// goEvents.emitSlow, which has pushed kept.
func (c *coder) goPayload(kept []amd64.Reg) {
	pushed := func(r amd64.Reg) amd64.Mem {
		return amd64.At(amd64.RSP, int32(8*(len(kept)-1-slices.Index(kept, r))))
	}
	for _, r := range []amd64.Reg{amd64.RAX, amd64.RCX, amd64.RDX} {
		off, _ := savedAt(r)
		c.Load64(amd64.RAX, pushed(r))
		c.Store64(amd64.At(amd64.RSP, off), amd64.RAX)
	}
	c.Load64(amd64.RBX, pushed(amd64.RBX))
	c.Load64(amd64.RAX, pushed(amd64.R12))
	c.Load64(amd64.RAX, amd64.At(amd64.RAX, -8))
	c.Store64(amd64.At(amd64.RSP, saveGather), amd64.RAX)
	c.Load64(amd64.RAX, pushed(amd64.R15)) // SPDelta, and the word
	c.ShrImm(amd64.RAX, 32)
	c.AddMem(amd64.RAX, pushed(amd64.R13)) // the goroutine's stack pointer
	c.Store64(amd64.At(amd64.RSP, saveEntry), amd64.RAX)
	c.Mov32(amd64.RAX, amd64.R13)
	c.Shl32Imm(amd64.RAX, 3)
	c.CallTo(c.routines.captures.slow)
}
