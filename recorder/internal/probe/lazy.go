package probe

import (
	"encoding/binary"
	"slices"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// Lazily, an entry's stub begins as the function's specific trampoline: it leads to the generic trampoline, with the function
// named in EAX, until the function's probe is made. That is one exchange of aligned bytes, after which it is the same stub as
// if all probes had been made at once. The instructions begin at the same places before and after, and no thread can read a
// part of the exchange, so it needs no thread to stand still.
//
// With shared event routines it is the displacement of their call that is exchanged; where events are inline, their
// first instruction, which has a jump in its place until then.
//
// Exits need nothing of the kind. No call has an entry event before its function's probe is made, so an exit that comes
// first is that of a call which was there before recording, as it is when all probes are made at once.

// Slot is the entry of a function whose probe is made on its first call.
type Slot struct {
	ID   uint32
	At   uint32 // offset in the code, a multiple of 8
	Word uint64 // what is to stand there then
}

// entrySlot is a slot being made.
type entrySlot struct {
	id      uint32
	start   uint32 // offset in the code
	ask     uint32 // where the jump leads that is there until then; 0 where it is a call that is changed
	spDelta int32  // of the event routine that the call is to lead to then
}

// callEnd is where, from the slot's start, the call of an event routine ends: RAX is saved, the word goes to EAX.
const callEnd = 5 + 5 + nearJump

// slotStart appends what it takes for a slot to begin here.
func (c *coder) slotStart() {
	c.Align(16)
	if c.rt.Shared[0] != 0 {
		c.Raw(0xCC) // so that the call's displacement doesn't lie on two words
	}
}

// sharedSlot appends an entry's event by a shared routine.
func (c *coder) sharedSlot(id uint32, spDelta int32) {
	c.slots = append(c.slots, entrySlot{id: id, start: uint32(c.Len()), spDelta: spDelta})
	c.Store64(amd64.At(amd64.RSP, saveRAX), amd64.RAX)
	c.MovImm32(amd64.RAX, word(id, false))
	c.CallTo(c.rt.generic[0])
}

// inlineSlot notes that an entry's inline event begins here, and appends, later, what is done until the probe is made.
// done is where the event ends.
func (c *coder) inlineSlot(id uint32, done amd64.Label) {
	k, start := len(c.slots), c.PC()
	c.slots = append(c.slots, entrySlot{id: id, start: uint32(c.Len())})
	later := c.later()
	c.cold = append(c.cold, func() {
		later()
		c.slots[k].ask = uint32(c.Len())
		c.Store64(amd64.At(amd64.RSP, saveRAX), amd64.RAX)
		c.MovImm32(amd64.RAX, word(id, false))
		c.CallTo(c.rt.generic[1])
		c.Jmp(done)
		c.JmpTo(start)
	})
}

// settle turns the slots in finished code into what they are before the probes are made.
func (code *Code) settle(slots []entrySlot) {
	le := binary.LittleEndian
	code.Slots = make([]Slot, 0, len(slots))
	for _, s := range slots {
		at := s.start
		if s.ask == 0 {
			at += callEnd - 8 // the word that ends with the call
		}
		w := code.Bytes[at:][:8]
		made := le.Uint64(w)
		if s.ask == 0 {
			routine := code.rt.entries[s.spDelta] - code.Base
			made = made&(1<<32-1) | uint64(uint32(routine)-(s.start+callEnd))<<32
		} else {
			w[0] = 0xE9
			le.PutUint32(w[1:], s.ask-(s.start+nearJump))
		}
		code.Slots = append(code.Slots, Slot{s.id, at, made})
	}
}

// emitLazy appends the generic trampoline, and the shared event routines of entries.
func (c *coder) emitLazy(fns []Selected) {
	ask := c.emitAsk()
	c.beginRoutine() // all of them: they keep the stack pointer where it is
	defer c.endRoutine()
	c.rt.generic[0] = c.emitGeneric(ask, -callEnd)
	c.rt.generic[1] = c.emitGeneric(ask, nearJump)
	if c.rt.Shared[0] == 0 {
		return
	}
	c.rt.entries = map[int32]uint64{0: c.rt.Shared[0]}
	for i := range fns {
		for _, site := range fns[i].Patched() {
			if site.Role == RoleEntry && c.rt.entries[site.SPDelta] == 0 {
				c.Align(64)
				c.rt.entries[site.SPDelta] = c.PC()
				c.shared(false, site.SPDelta)
			}
		}
	}
}

// emitGeneric appends the generic trampoline, and returns its address. It is called like an event routine, asks for the
// probe of the function that EAX names, waits until it is made, and returns with everything as it was before, to again bytes
// behind the call. Where nobody makes probes any more it returns to the call's end: this call of the function goes unrecorded.
func (c *coder) emitGeneric(ask uint64, again int32) uint64 {
	c.Align(64)
	addr := c.PC()
	off := c.NewLabel()
	c.Store64(amd64.At(amd64.RSP, saveWord+8), amd64.RAX)
	c.saveFlags(8)
	c.Load64(amd64.RDX, amd64.AtAddr(c.rt.Gate))
	c.Load32(amd64.RAX, amd64.AtFS(c.rt.TIDOffset))
	c.Test(amd64.RDX, amd64.RDX)
	c.Jcc(amd64.CondE, off)
	c.Shl32Imm(amd64.RAX, 3)
	c.Load32(amd64.RCX, amd64.At(amd64.RSP, saveWord+8))
	c.Lea(amd64.RDX, amd64.At(amd64.RSP, 8))
	c.CallTo(ask)
	c.Test(amd64.RAX, amd64.RAX)
	c.Jcc(amd64.CondE, off)
	c.Load64(amd64.RAX, amd64.At(amd64.RSP, 0))
	c.Lea(amd64.RAX, amd64.At(amd64.RAX, again))
	c.Store64(amd64.At(amd64.RSP, 0), amd64.RAX)
	c.Place(off)
	c.restore(8)
	c.Ret()
	return addr
}

// Numbers of futex(2) (linux/futex.h, arch/x86/entry/syscalls/syscall_64.tbl).
const (
	sysFutex  = 202
	futexWait = 0
	futexWake = 1
)

// LazySyscalls are the numbers of the system calls that the generic trampoline makes.
func LazySyscalls() []uint64 { return []uint64{sysFutex} }

// maxAsked is how often a thread looks, after at most 10 ms each time, whether a living recorder has made the probe.
const maxAsked = 200

// askPath is the waiting for a probe. It is called as the slow path is, see there, with the word in ECX and 8×TID in EAX, and
// keeps what that keeps; RAX becomes 1 when the probe is made, 0 when it won't be.
//
// The asked bit is set before that of its group, and this before HdrAsked changes; the recorder reads HdrAsked, takes the
// groups' bits and then the functions', so no asking is lost. Nor is a making: HdrMade is read before the made bit is looked at, and
// changes after the bit is set. Who finds the asked bit set only waits at first. A thread that is killed while it waits, or taken out by longjmp, leaves nothing behind but what
// the slow path would; the probe is made all the same.
//
// Registers inside: RBX the function, RBP HdrMade, R8 slot, R9 ring, R12 the answer, R13 how often it has waited.
type askPath struct {
	*slowPath
	again, made, wait, end amd64.Label
}

// emitAsk appends the waiting for a probe, and returns its address.
func (c *coder) emitAsk() uint64 {
	c.Align(16)
	waitAt := c.PC()
	c.Raw(0, 0, 0, 0, 0, 0, 0, 0)          // 0 s
	c.Raw(0x80, 0x96, 0x98, 0, 0, 0, 0, 0) // 10,000,000 ns
	c.Align(64)
	addr := c.PC()
	a := &askPath{slowPath: &slowPath{coder: c, out: c.NewLabel(), leave: c.NewLabel()}}
	for _, l := range []*amd64.Label{&a.again, &a.made, &a.wait, &a.end} {
		*l = c.NewLabel()
	}
	a.prologue()
	a.ShrImm(amd64.RBX, 1)
	a.MovImm32(amd64.R12, 0)
	a.count(1)
	a.look()
	a.wake()
	a.sleep(waitAt)
	c.Place(a.made)
	c.MovImm32(amd64.R12, 1)
	c.Place(a.leave)
	a.count(-1)
	c.Mov(amd64.RAX, amd64.R12)
	c.Jmp(a.end)
	c.Place(a.out)
	c.MovImm32(amd64.RAX, 0)
	c.Place(a.end)
	for _, r := range slices.Backward(saved) {
		c.giveBack(r)
	}
	c.drop(-64)
	c.Ret()
	c.endRoutine()
	return addr
}

// look ends the waiting when the probe is made, or will not be: the gate is closed, the recorder dead or silent.
func (a *askPath) look() {
	a.Place(a.again)
	a.CmpMem64Imm8(amd64.AtAddr(a.rt.Gate), 0)
	a.Jcc(amd64.CondE, a.leave)
	a.Load32(amd64.RBP, a.hdr(ring.HdrMade))
	a.BtMem(a.hdr(ring.MadeOff), amd64.RBX)
	a.Jcc(amd64.CondB, a.made)
	a.TestMem32Imm(a.hdr(ring.HdrCompiler), ring.CompilerDied)
	a.Jcc(amd64.CondNE, a.leave)
	a.heartbeat(ring.HdrWaitLimit)
	a.Jcc(amd64.CondA, a.leave)
}

// wake asks, if nobody has, or if nothing came of that: who asked may have been taken out between two steps.
func (a *askPath) wake() {
	first := a.NewLabel()
	a.LockBtsMem(a.hdr(ring.AskedOff), amd64.RBX)
	a.Jcc(amd64.CondAE, first)
	a.Test(amd64.R13, amd64.R13)
	a.Jcc(amd64.CondE, a.wait)
	a.Place(first)
	a.Mov(amd64.RAX, amd64.RBX)
	a.ShrImm(amd64.RAX, ring.AskedGroupShift)
	a.LockBtsMem(a.hdr(ring.HdrAskedGroups), amd64.RAX)
	a.MovImm32(amd64.RAX, 1)
	a.LockXadd64(a.hdr(ring.HdrAsked), amd64.RAX)
	a.Lea(amd64.RDI, a.hdr(ring.HdrAsked))
	a.MovImm32(amd64.RSI, futexWake)
	a.MovImm32(amd64.RDX, 1)
	a.MovImm32(amd64.RAX, sysFutex)
	a.Syscall()
}

// sleep waits for a change of HdrMade, and looks again. A call that a living recorder doesn't get to is counted as dropped.
func (a *askPath) sleep(waitAt uint64) {
	a.Place(a.wait)
	a.Lea(amd64.RDI, a.hdr(ring.HdrMade))
	a.MovImm32(amd64.RSI, futexWait)
	a.Mov32(amd64.RDX, amd64.RBP)
	a.Lea(amd64.R10, amd64.AtAddr(waitAt))
	a.MovImm32(amd64.RAX, sysFutex)
	a.Syscall()
	a.Lea(amd64.R13, amd64.At(amd64.R13, 1))
	a.MovImm32(amd64.RAX, maxAsked)
	a.Cmp(amd64.R13, amd64.RAX)
	a.Jcc(amd64.CondBE, a.again)
	a.IncMem(a.slot(ring.SlotDropped))
	a.Jmp(a.leave)
}
