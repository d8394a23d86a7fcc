package arm64

import (
	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// An event with a payload is claimed together with it by one addition, and its own word is stored last of all, by release: so whoever sees
// the event sees the payload. What is left of a chunk may be less than that; the addition has then claimed all of it, and it is filled with
// events that say nothing before the slow path takes another chunk.

// captures returns the function's captures, nil if it has none.
func (s *emitter) captures() *stub.Captures {
	if s.fn.ID == 0 || len(s.cfg.Captures) == 0 {
		return nil
	}
	return s.cfg.Captures[s.fn.ID]
}

// capturedEvent appends an event of a function that has captures: one with a payload, if there is one for this event, and only of a call for
// which the function's conditions hold. All registers are as in event.
func (c *coder) capturedEvent(p place, captures *stub.Captures, capture *stub.Capture) {
	if c.cfg.Go != nil { // whose calls have no conditions
		c.goCaptured(p, capture)
		return
	}
	if p.alive {
		c.push(x16, x17)
	}
	off := c.NewLabel()
	if c.cfg.Lazy && !p.exit {
		c.slots = append(c.slots, entrySlot{id: p.id, whole: true})
	}
	c.switchTest(p, off)
	if len(captures.Conditions) > 0 && !p.exit {
		c.conditions(captures.Conditions, p, off)
	}
	now := p.exit || capture == nil || len(capture.Conditions) == 0 // else what gathers values decides
	switch {
	case captures.Chosen() && now:
		c.ofOpen(p, off)
	case captures.Chosen():
	case c.cfg.Chooses():
		c.choose(p.exit, p.spDelta, func() { c.MovImmW(x16, c.chosenWord(p)) }, off)
	}
	c.throughGate(off)
	if !p.exit && captures.NotesResult() {
		c.noteResult(p)
	}
	c.written(p, capture, off)
	c.Place(off)
	if p.alive {
		c.pop(x16, x17)
	}
}

// written appends the event itself, with what it carries, nil for nothing; the thread's slot is in x16. It goes on at off where it isn't to be
// written.
func (c *coder) written(p place, capture *stub.Capture, off arm64.Label) {
	gather := c.routines.gather[gatherKey{p.id, p.exit}]
	if capture != nil && !capture.Inline() {
		c.callGather(p, gather)
	} else {
		slow := c.NewLabel()
		if capture == nil {
			c.take(slow)
		} else {
			c.takeAll(capture.Events(), slow)
			c.storeDirect(capture, p)
		}
		c.time(p.exit)
		c.publish(p)
		later := c.later()
		c.cold = append(c.cold, func() {
			later()
			c.Place(slow)
			if capture == nil {
				c.callSlow(func() { c.MovImmW(x16, word(p.id, p.exit)) }, p.spDelta)
			} else {
				c.push(x0, x1)
				c.fillRest(x16, x0)
				c.pop(x0, x1)
				c.callGather(p, gather)
			}
			c.B(off)
		})
	}
}

// publish appends the store of an event's stack pointer and word: one, by release. x17 is where they go, and x16 is clobbered.
func (c *coder) publish(p place) {
	c.spAtEntryW(x16, p.spDelta)
	c.putWord(x16, word(p.id, p.exit))
	c.StoreRelease(8, x16, x17)
}

// putWord appends the setting of a register's upper half, which is zero: behind an addition of 32 bits it is, whatever address or tag was added to.
// So half of an ID that is below 1<<15 is there already.
func (c *coder) putWord(r isa.Reg, w uint32) {
	for shift := uint8(0); shift < 32; shift += 16 {
		if part := uint16(w >> shift); part != 0 {
			c.Movk(r, part, 32+shift)
		}
	}
}

// callGather appends the way by the slow path, which calls what gathers the payload.
func (c *coder) callGather(p place, gather uint64) {
	c.AdrpTo(x17, gather)
	c.AddImm(x17, x17, int64(gather&0xFFF))
	c.push(lr, x17)
	c.MovImmW(x16, word(p.id, p.exit))
	c.spAtEntry(x17, p.spDelta)
	c.BlTo(c.routines.slowGather)
	c.pop(lr, zr)
}

// gatherAt is where callGather has put the routine's address, seen from the slow path's frame.
const gatherAt = frameSize + 8

// takeAll appends the claim of an event and n payload events out of the claim word at x16: x17 becomes the event's address. It goes to slow
// with x17 the claim word that was there if there is no space for all. x16 is clobbered.
func (c *coder) takeAll(n int, slow arm64.Label) {
	all := uint64(n+1) * ring.Claim
	if c.atomics() {
		c.MovImm(x17, all)
		c.LoadAdd(8, x17, x17, x16, arm64.Order{})
	} else {
		c.push(x0, x1)
		c.MovImm(x0, all)
		c.exclusively(8, x17, x16, x17, x1, arm64.Order{}, func() { c.Add(x17, x17, x0) })
		c.Sub(x17, x17, x0)
		c.pop(x0, x1)
	}
	c.AsrImm(x16, x17, ring.ClaimShift)
	c.AddImm(x16, x16, int64(n))
	c.Tbz(x16, 63, slow)
	c.AndImm(x17, x17, claimLow)
}

// fillRest appends the filling of what was left when the claim word was x17. Both registers and x17 are clobbered.
func (c *coder) fillRest(left, tmp isa.Reg) {
	next, none := c.NewLabel(), c.NewLabel()
	c.AsrImm(left, x17, ring.ClaimShift)
	c.AndImm(x17, x17, claimLow)
	c.AddImm(x17, x17, ring.EventWord)
	c.MovImmW(tmp, ring.PayloadWord)
	c.Place(next)
	c.Tbz(left, 63, none)
	c.Store(4, tmp, arm64.Post(x17, ring.EventSize))
	c.AddImm(left, left, 1)
	c.B(next)
	c.Place(none)
}

// storeDirect appends the payload of the event at x17, out of registers. x16 is clobbered.
func (c *coder) storeDirect(capture *stub.Capture, p place) {
	n := capture.Events()
	for _, i := range capture.Direct() {
		f := &capture.Fields[i]
		o := &f.Value
		to := arm64.At(x17, int32(ring.EventSize*(1+f.Place()/ring.PayloadBytes)+f.Place()%ring.PayloadBytes))
		size := 4
		if o.Wide() {
			size = 8
		}
		r := o.Reg
		switch {
		case o.Origin == stub.OriginVector:
			c.StoreV(size, isa.Reg(o.Vector), to)
			continue
		case o.Memory:
			if o.Origin == stub.OriginAddress {
				c.MovImm(x16, o.Addr)
			} else {
				c.spAtEntry(x16, p.origin())
			}
			c.addOff(x16, o.Off)
			c.Load(int(o.Size), x16, arm64.At(x16, 0))
			r = x16
		case o.Origin == stub.OriginStack, r == sp:
			c.spAtEntry(x16, p.origin())
			r = x16
		case p.mark && (r == x16 || r == x17): // kept first of all
			c.Load(8, x16, arm64.At(sp, c.low-pairSize+8*int32(r-x16)))
			r = x16
		}
		c.Store(size, r, to)
	}
	for i := range n {
		c.MovImmW(x16, payloadWord(i, n))
		c.Store(4, x16, arm64.At(x17, int32(ring.EventSize*(1+i)+ring.EventWord)))
	}
}

// addOff appends the addition of any displacement to a register. Flags stay.
func (c *coder) addOff(r isa.Reg, off int32) {
	low := int64(off) & 0xFFF
	if high := int64(off) - low; high != 0 {
		if high > -1<<24 && high < 1<<24 {
			c.AddImm(r, r, high)
		} else { // in halves, which is rare
			c.AddImm(r, r, high/2&^0xFFF)
			for rest := high - high/2&^0xFFF; rest != 0; {
				step := max(min(rest, 0xFFF000), -0xFFF000)
				c.AddImm(r, r, step)
				rest -= step
			}
		}
	}
	if low != 0 {
		c.AddImm(r, r, low)
	}
}

// payloadWord is the word of the i-th of n payload events.
func payloadWord(i, n int) uint32 {
	return ring.PayloadWord | uint32(i)<<ring.PayloadIndexShift | uint32(n)<<ring.PayloadCountShift
}

// inArgs is a field of the thread's argument buffer, whose address args loads into x14.
func inArgs(off int32) arm64.Mem { return arm64.At(rTo, off) }

func (s *slowPath) args() {
	s.tidOfSlot(x0)
	s.MovImm(rTo, s.cfg.Args)
	s.AddLSL(rTo, rTo, x0, ring.ArgsShift)
}

// gatherValues calls what gathers the payload, into the thread's argument buffer.
func (s *slowPath) gatherValues() {
	s.args()
	if s.cfg.Clock != stub.ClockNone { // the time that gathering takes is not the call's
		s.stamp(rTo, ring.ArgsTime)
	}
	s.Load(8, x15, arm64.At(rFrame, gatherAt))
	s.Blr(x15)
	if s.cfg.Areas == 0 {
		return
	}
	s.Load(8, x0, inArgs(ring.ArgsCount))
	s.Tbnz(x0, 63, s.unblock) // a condition doesn't hold
	s.ifZero(8, inArgs(ring.ArgsOpen), s.claim)
	s.Cbnz(rNaps, s.claim) // it has been pushed, and has waited for space since
	s.MovW(x16, rWord)
	s.Mov(x17, rSP)
	s.BlTo(s.routines.open[0])
	s.CbnzW(x16, s.claim)
	s.increment(ring.SlotDropped)
	s.B(s.unblock)
}

// claimWithPayload claims an event and what is in the thread's argument buffer. Nothing comes in between: signals are blocked.
func (s *slowPath) claimWithPayload() {
	enough := s.NewLabel()
	s.args()
	s.Load(8, x17, s.slot(ring.SlotClaim))
	s.Tbz(x17, 63, s.register)
	s.Load(8, x4, inArgs(ring.ArgsCount))
	s.AsrImm(x0, x17, ring.ClaimShift)
	s.Add(x0, x0, x4)
	s.Tbnz(x0, 63, enough)
	s.fillRest(x0, x1)
	s.B(s.register)
	s.Place(enough)
	s.AddImm(x0, x4, 1)
	s.LslImm(x1, x0, 4) // times ring.EventSize
	s.OrrLSL(x1, x1, x0, ring.ClaimShift)
	s.Add(x1, x1, x17)
	s.Store(8, x1, s.slot(ring.SlotClaim))
	s.AndImm(x17, x17, claimLow)
}

// withoutPayload is before the writing of an event into a spare chunk, which is for exits alone. x17 stays.
func (s *slowPath) withoutPayload() {
	s.args()
	s.Store(8, zr, inArgs(ring.ArgsCount))
}

// writePayload writes what is in the thread's argument buffer behind the event at x17.
func (s *slowPath) writePayload() {
	next, none := s.NewLabel(), s.NewLabel()
	s.Load(8, x4, inArgs(ring.ArgsCount))
	s.Cbz(x4, none)
	s.MovImmW(x5, ring.PayloadWord)
	s.OrrLSL(x5, x5, x4, ring.PayloadCountShift)
	s.AddImm(x0, rTo, ring.ArgsData)
	s.AddImm(x1, x17, ring.EventSize)
	s.Place(next)
	s.Load(8, x2, arm64.Post(x0, 8))
	s.Load(4, x3, arm64.Post(x0, ring.PayloadBytes-8))
	s.Store(8, x2, arm64.Post(x1, 8))
	s.StorePairW(x3, x5, arm64.Post(x1, ring.EventSize-8))
	s.AddImmW(x5, x5, 1<<ring.PayloadIndexShift)
	s.SubImm(x4, x4, 1)
	s.Cbnz(x4, next)
	s.Place(none)
}

// timeBefore replaces the time of a return's event at x17 by that of before its values were gathered.
func (s *slowPath) timeBefore() {
	entry := s.NewLabel()
	s.Tbz(rWord, 0, entry)
	s.Load(8, x0, inArgs(ring.ArgsTime))
	s.Store(8, x0, arm64.At(x17, ring.EventTime))
	s.Place(entry)
}
