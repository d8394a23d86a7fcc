package amd64

import (
	"encoding/binary"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// Lazily, an entry's stub begins as the function's specific trampoline: it leads to the generic trampoline, with the function
// named in EAX, until the function's probe is made. That is one exchange of aligned bytes, after which it is the same stub as
// if all probes had been made at once. The instructions begin at the same places before and after, and no thread can read a
// part of the exchange, so no thread need be stopped for it.
//
// Nor does the calling thread wait for it: the generic trampoline asks for the probe and writes the event itself, by the routine that
// the slot is going to lead to. Until the recorder has got round to the exchange, calls go this way.
//
// With shared event routines it is the displacement of their call that is exchanged; where events are inline, their
// first instruction, which has a jump in its place until then.
//
// Exits need nothing of the kind: they write their events from the beginning, as entries do.

// entrySlot is a slot being made.
type entrySlot struct {
	id      uint32
	start   uint32 // offset in the code
	ask     uint32 // where the jump leads that is there until then; 0 where it is a call that is changed
	spDelta int32  // of the event routine that the call is to lead to then
	made    bool   // nothing is changed: a captured function's first call needs its own code already
}

// callEnd is where, from the slot's start, the call of an event routine ends: RAX is saved, the word goes to EAX.
const callEnd = 5 + 5 + plan.NearJump

// slotStart appends what it takes for a function's slot to begin here.
func (c *coder) slotStart(id uint32) {
	if c.routines.shared[0] == 0 || c.keeping(id) != nil { // its event is inline
		c.Align(16)
		return
	}
	// So that the call's displacement doesn't lie on two words.
	for c.PC()&7 != 1 {
		c.Raw(0xCC)
	}
}

// sharedSlot appends an entry's event by a shared routine.
func (c *coder) sharedSlot(id uint32, spDelta int32) {
	c.slots = append(c.slots, entrySlot{id: id, start: c.offset(), spDelta: spDelta})
	c.Store64(amd64.At(amd64.RSP, saveRAX), amd64.RAX)
	c.MovImm32(amd64.RAX, word(id, false))
	c.CallTo(c.routines.generic[spDelta])
}

// inlineSlot notes that an entry's inline event begins here, and appends, later, what is done until the probe is made.
// done is where the event ends.
func (c *coder) inlineSlot(id uint32, spDelta int32, done amd64.Label) {
	k := len(c.slots)
	c.slots = append(c.slots, entrySlot{id: id, start: c.offset()})
	c.slotSwitch()
	later := c.later()
	c.cold = append(c.cold, func() {
		later()
		c.slots[k].ask = c.offset()
		c.Store64(amd64.At(amd64.RSP, saveRAX), amd64.RAX)
		c.MovImm32(amd64.RAX, word(id, false))
		c.CallTo(c.routines.generic[spDelta])
		c.Jmp(done)
	})
}

// settle turns the slots in a function's stubs, whose labels are resolved, into what they are before the probes are made.
func (c *coder) settle(code *Code) {
	le := binary.LittleEndian
	for _, s := range c.slots {
		at := s.start
		if s.ask == 0 && !s.made {
			at += callEnd - 8 // the word that ends with the call
		}
		w := c.Since(int(uint64(at) - (c.Base() - c.base)))[:8]
		made := le.Uint64(w)
		switch {
		case s.made:
		case s.ask == 0:
			routine := c.routines.entries[s.spDelta] - c.base
			made = made&(1<<32-1) | uint64(uint32(routine)-(s.start+callEnd))<<32
		default:
			w[0] = 0xE9
			le.PutUint32(w[1:], s.ask-(s.start+plan.NearJump))
		}
		code.Slots = append(code.Slots, stub.Slot{ID: s.id, At: at, Word: made})
	}
	c.slots = c.slots[:0]
}

// emitLazy appends the generic trampolines, and the event routines that slots lead to.
func (c *coder) emitLazy(fns []stub.Probe) {
	c.beginRoutine() // all of them: they keep the stack pointer where it is
	defer c.endRoutine()
	c.routines.generic, c.routines.entries = map[int32]uint64{}, map[int32]uint64{}
	if c.routines.shared[0] != 0 {
		c.routines.entries[0] = c.routines.shared[0]
	}
	for i := range fns {
		for _, site := range fns[i].Patched() {
			if site.Role != plan.RoleEntry || c.routines.generic[site.SPDelta] != 0 {
				continue
			}
			if c.routines.entries[site.SPDelta] == 0 {
				c.Align(64)
				c.routines.entries[site.SPDelta] = c.PC()
				c.shared(false, site.SPDelta)
			}
			c.routines.generic[site.SPDelta] = c.emitGeneric(c.routines.entries[site.SPDelta])
			c.flush()
		}
	}
}

// emitGeneric appends the generic trampoline in front of an event routine, and returns its address. It is called as the routine
// is, asks for the probe of the function that EAX names, and goes on in the routine with everything as it was before.
//
// The bit is set before the event is written, so there is no event of a function that isn't asked for; and HdrAsked changes after the
// bit is set, so the recorder, which reads them the other way round, misses none. A thread that is killed in between, or taken out
// by longjmp, leaves a bit which the recorder finds at the next change, or at the end.
func (c *coder) emitGeneric(routine uint64) uint64 {
	c.Align(64)
	addr := c.PC()
	asked := c.NewLabel()
	bit := amd64.At(amd64.RDX, ring.AskedOff-ring.SlotsOff)
	c.Store64(amd64.At(amd64.RSP, saveWord+8), amd64.RAX)
	c.saveFlags(8)
	closed := c.whenClosed(c.PC(), asked)
	c.whileOn(amd64.RDX, closed, asked)
	c.Load32(amd64.RCX, amd64.At(amd64.RSP, saveWord+8))
	c.ShrImm(amd64.RCX, 1)
	c.BtMem(bit, amd64.RCX)
	c.Jcc(amd64.CondB, asked)
	c.LockBtsMem(bit, amd64.RCX)
	c.Jcc(amd64.CondB, asked)
	c.MovImm32(amd64.RCX, 1)
	c.LockXadd64(amd64.At(amd64.RDX, ring.HdrAsked-ring.SlotsOff), amd64.RCX)
	c.Place(asked)
	c.restore(8)
	c.Load32(amd64.RAX, amd64.At(amd64.RSP, saveWord+8))
	c.JmpTo(routine)
	return addr
}
