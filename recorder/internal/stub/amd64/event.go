package amd64

import (
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// Event code keeps what it clobbers below the stack pointer S, where at an entry, a return or a tail jump nothing is live
// (System V AMD64 ABI §3.2.2: the red zone is the callee's, which hasn't begun or is over) and where signal frames don't
// reach, since the kernel skips 128 bytes. [S-8] is left for the return address of a call out of the stub, [S-16] for
// that of a call by the shared routine.
const (
	saveRAX   = -24
	saveRCX   = -32
	saveRDX   = -40
	saveFlags = -48
	saveWord  = -56
)

// word is the event's last word.
func word(id uint32, exit bool) uint32 {
	w := id << 1
	if exit {
		w |= 1
	}
	return w
}

// coder is an assembler with parts that are seldom run, put behind the rest by flush.
type coder struct {
	*amd64.Asm
	cfg      *stub.Config
	lang     language
	routines *routines
	base     uint64
	cold     []func()
	slots    []entrySlot
	moved    []plan.Moved // of the site at work
	unwind   *unwinding
	inside   bool // the function at work is stub.Probe.Inside

	marking  uint32 // the ID of the marker whose event is at work, else 0
	heedless bool   // the event at work is written although recording is paused
	listing  bool   // switches are to be noted
	switches []switching
}

// offset is where in the arena's code the next byte is.
func (c *coder) offset() uint32 { return uint32(c.PC() - c.base) }

// flush emits the cold parts that were put off, those that they put off themselves included.
func (c *coder) flush() {
	for len(c.cold) > 0 {
		next := c.cold
		c.cold = nil
		for _, emit := range next {
			emit()
		}
	}
}

// event appends code that writes one event and leaves every register and flag as it was. The stack pointer here is
// spDelta bytes below its value at the function's entry.
func (cEvents) event(c *coder, id uint32, exit bool, spDelta int32) {
	c.beginSwitch(exit)
	defer c.endSwitch()
	shared := c.routines.shared[btoi(exit)]
	inside := c.cfg.Inside && c.inside // whose word has a mark more than shared routines know
	keep := c.keeping(id)
	if inside || keep != nil {
		shared = 0
	}
	if shared != 0 && c.cfg.Lazy && !exit {
		c.sharedSlot(id, spDelta)
		return
	}
	if shared != 0 && spDelta == 0 {
		c.Store64(amd64.At(amd64.RSP, saveRAX), amd64.RAX)
		c.MovImm32(amd64.RAX, word(id, exit))
		c.CallTo(shared)
		return
	}
	off, slow, done := c.NewLabel(), c.NewLabel(), c.NewLabel()
	switch {
	case exit || !c.cfg.Lazy:
	case inside: // each function has a slot, so that those of others are found
		c.slots = append(c.slots, entrySlot{id: id, start: c.offset(), made: true})
	default:
		c.inlineSlot(id, spDelta, done)
	}
	c.Store64(amd64.At(amd64.RSP, saveRAX), amd64.RAX)
	c.saveFlags(0)
	if c.cfg.Chooses() {
		c.choose(exit, spDelta, func() {
			w := word(id, false)
			if inside {
				w |= recordInside
			}
			c.MovImm32(amd64.RCX, w)
		}, off)
	}
	if exit && c.cfg.Min {
		c.takeBack(id, 0, off)
	}
	if keep != nil && exit {
		c.claimBefore(keep, off, slow)
	} else {
		c.claim(off, slow)
	}
	if spDelta == 0 {
		c.Store32(amd64.At(amd64.RCX, ring.EventSP), amd64.RSP)
	} else {
		c.Lea(amd64.RAX, amd64.At(amd64.RSP, spDelta))
		c.Store32(amd64.At(amd64.RCX, ring.EventSP), amd64.RAX)
	}
	c.time(exit)
	c.Store32Imm(amd64.At(amd64.RCX, ring.EventWord), word(id, exit))
	written := c.NewLabel()
	c.Place(written)
	switch {
	case keep == nil:
	case exit:
		c.carry(keep, off)
	default:
		c.keepArguments(keep, id, spDelta)
	}
	c.Place(off)
	c.restore(0)
	c.Place(done)
	later := c.later()
	c.cold = append(c.cold, func() {
		later()
		c.Place(slow)
		c.MovImm32(amd64.RCX, word(id, exit))
		c.Lea(amd64.RDX, amd64.At(amd64.RSP, spDelta))
		c.CallTo(c.routines.slow)
		if keep != nil {
			c.Rdtsc()
			c.Jmp(written)
			return
		}
		c.Jmp(off)
	})
}

// emitShared appends the shared event routines. Neither of them calls the other.
func (c *coder) emitShared() {
	shared := [2]uint64{}
	for i := range shared {
		c.Align(64)
		shared[i] = c.PC()
		c.beginRoutine()
		c.shared(i == 1, 0)
		c.flush()
		c.endRoutine()
	}
	c.routines.shared = shared
}

// shared appends the event routine that stubs call with the event's word in EAX and RAX saved, S being 8 above the stack
// pointer, and the stack pointer at the function's entry spDelta above that. It is for processes with many probes, where it
// is the caches that count.
func (c *coder) shared(exit bool, spDelta int32) {
	off, slow := c.NewLabel(), c.NewLabel()
	c.Store64(amd64.At(amd64.RSP, saveWord+8), amd64.RAX)
	c.saveFlags(8)
	if c.cfg.Chooses() {
		c.choose(exit, 8+spDelta, func() {
			c.Load32(amd64.RCX, amd64.At(amd64.RSP, saveWord+8))
			if exit {
				c.Lea(amd64.RCX, amd64.At(amd64.RCX, -1))
			}
		}, off)
	}
	if exit && c.cfg.Min {
		c.takeBack(0, 8, off)
	}
	c.claim(off, slow)
	c.Lea(amd64.RAX, amd64.At(amd64.RSP, 8+spDelta))
	c.Store32(amd64.At(amd64.RCX, ring.EventSP), amd64.RAX)
	c.time(exit)
	c.Load32(amd64.RAX, amd64.At(amd64.RSP, saveWord+8))
	c.Store32(amd64.At(amd64.RCX, ring.EventWord), amd64.RAX)
	c.Place(off)
	c.restore(8)
	c.Ret()
	c.Place(slow)
	c.Load32(amd64.RCX, amd64.At(amd64.RSP, saveWord+8))
	c.Lea(amd64.RDX, amd64.At(amd64.RSP, 8+spDelta))
	c.CallTo(c.routines.slow)
	c.Jmp(off)
}

// saveFlags appends the saving of RCX, RDX and the flags; RAX is clobbered. S is above bytes higher than RSP.
func (c *coder) saveFlags(above int32) {
	c.Lahf()
	c.SetOAL()
	c.Store64(amd64.At(amd64.RSP, saveRCX+above), amd64.RCX)
	c.Store64(amd64.At(amd64.RSP, saveRDX+above), amd64.RDX)
	c.Store64(amd64.At(amd64.RSP, saveFlags+above), amd64.RAX)
}

// restore appends the way back: flags, then registers.
func (c *coder) restore(above int32) {
	c.Load64(amd64.RAX, amd64.At(amd64.RSP, saveFlags+above))
	c.Load64(amd64.RDX, amd64.At(amd64.RSP, saveRDX+above))
	c.Load64(amd64.RCX, amd64.At(amd64.RSP, saveRCX+above))
	c.AddALImm(0x7F) // AL is OF: 1+0x7F overflows, 0+0x7F doesn't
	c.Sahf()
	c.Load64(amd64.RAX, amd64.At(amd64.RSP, saveRAX+above))
}

// claim appends the claim of 16 bytes: RCX becomes the event's address, RDX the slots and RAX 8×TID. It jumps to off
// when the gate is closed, to slow when the chunk has no space. The XADD is one instruction and gives address and space at
// once, so a signal handler that runs stubs of its own, and may even change the chunk, comes wholly before or wholly after.
func (c *coder) claim(off, slow amd64.Label) {
	c.throughGate(off)
	c.take(amd64.AtIndex(amd64.RDX, amd64.RAX, 8, ring.SlotClaim), slow)
}

// throughGate appends what comes before every claim: RDX becomes the slots and RAX 8×TID. It jumps to off when the gate is closed, recording
// is paused, or the thread isn't recorded.
func (c *coder) throughGate(off amd64.Label) {
	closed := c.whenClosed(c.PC(), off)
	c.unlessHeld(amd64.RAX, off)
	c.Load64(amd64.RDX, amd64.AtAddr(c.cfg.Gate))
	c.threadID(amd64.RAX)
	c.Test(amd64.RDX, amd64.RDX)
	c.Jcc(amd64.CondLE, closed)
	c.unlessPaused(amd64.RDX, off)
	c.Shl32Imm(amd64.RAX, 3)
	c.unlessOff(off)
}

// unlessOff appends a jump to off where not all threads are recorded and this isn't one that is, see ring.SetOff. RDX are the slots and
// RAX 8×TID.
func (c *coder) unlessOff(off amd64.Label) {
	if c.cfg.Threads {
		c.CmpMem32Imm8(amd64.AtIndex(amd64.RDX, amd64.RAX, 8, ring.SlotRegistered), 1)
		c.Jcc(amd64.CondA, off)
	}
}

// take appends the taking of one event out of the claim word at m: RCX becomes its address. It jumps to none when there
// is no space.
func (c *coder) take(m amd64.Mem, none amd64.Label) {
	c.MovImm64(amd64.RCX, ring.Claim)
	c.Xadd64(m, amd64.RCX)
	c.Test(amd64.RCX, amd64.RCX)
	c.Jcc(amd64.CondNS, none)
	c.addressOf(amd64.RCX)
}

// addressOf appends the reduction of a claim word to the address in it.
func (c *coder) addressOf(r amd64.Reg) {
	c.ShlImm(r, 64-ring.ClaimShift)
	c.ShrImm(r, 64-ring.ClaimShift)
}

// time appends the store of the time-stamp counter into the event at RCX, if the event has one. RAX and RDX are
// clobbered.
func (c *coder) time(exit bool) {
	if !c.cfg.Clock.Reads(exit) {
		return
	}
	c.Rdtsc()
	c.Store32(amd64.At(amd64.RCX, ring.EventTime), amd64.RAX)
	c.Store32(amd64.At(amd64.RCX, ring.EventTime+4), amd64.RDX)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
