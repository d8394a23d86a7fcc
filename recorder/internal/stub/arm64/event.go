package arm64

import (
	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// An event is written with x16 and x17 alone, which nothing is in at a function's entry, at a return and at a direct tail jump. It
// changes no flags: gates and claims are tested bit by bit. There is no red zone, so where more registers are needed the stack
// pointer is moved before they are kept.

// gateOpen is a bit of the gate's word that is set while the gate is open. The hardware ignores an address's upper byte in loads
// and stores (TBI, on for all of Linux's user space), so the word is an address as it is; and a gate that was wiped, or whose highest
// byte says that it is shut, hasn't the bit. So one instruction tests what takes two otherwise. As a signed number the word is above 0,
// as stub.IsOpen asks.
const (
	gateOpen = 62
	// GateTag is what the address of the slots has added to it in an open gate.
	GateTag = 1 << gateOpen
)

// claimLow are the bits of a claim word that are an address.
const claimLow = 1<<ring.ClaimShift - 1

// word is the event's last word.
func word(id uint32, exit bool) uint32 {
	w := id << 1
	if exit {
		w |= 1
	}
	return w
}

// place says where in its function an event is.
type place struct {
	id      uint32
	exit    bool
	spDelta int32 // how far the stack pointer is below its value at the function's entry
	// alive says that there is something in x16 and x17.
	alive bool
	// inside says that the function is stub.Probe.Inside.
	inside bool
	mark   bool // it is a marker's, id is its ID
}

// lowered is how far the stack pointer is below its value at the function's entry once x16 and x17 are kept, which is how routines are found.
func (p *place) lowered() int32 {
	if p.alive {
		return p.spDelta + pairSize
	}
	return p.spDelta
}

// coder is an assembler with parts that are seldom run, put behind the rest by flush.
type coder struct {
	*arm64.Asm
	cfg      *stub.Config
	routines *routines
	base     uint64
	cold     []func()
	flushed  uint32        // the offset behind which nothing is put off any more
	claims   []arm64.Label // where the constant is loaded that claims an event, in what flush ends
	switches []switching
	slots    []entrySlot
	// behindCall, of tests, appends what is to be done to registers behind each system call.
	behindCall func(c *coder)
	// insteadOf, of tests, appends what stands for a system call that the emulator doesn't know.
	insteadOf func(c *coder, number uint16) bool
	heedless  bool // the event at work is written whether recording is paused or not
	unwind    *unwinding
	low       int32 // how far the stack pointer is below where the event at work has found it
}

// offset is where in the arena's code the next byte is.
func (c *coder) offset() uint32 { return uint32(c.PC() - c.base) }

// atomics says whether the processor has the atomic instructions of Armv8.1 (FEAT_LSE).
func (c *coder) atomics() bool { return c.cfg.HWCap&hwcapAtomics != 0 }

// flush emits the cold parts that were put off, those that they put off themselves included, and the constant that they load.
func (c *coder) flush() {
	for len(c.cold) > 0 {
		next := c.cold
		c.cold = nil
		for _, emit := range next {
			emit()
		}
	}
	if len(c.claims) > 0 {
		c.Align(8)
		for _, l := range c.claims {
			c.Place(l)
		}
		c.Data64(ring.Claim)
		c.claims = c.claims[:0]
	}
	c.flushed = c.offset()
}

// flushOften flushes between stubs if there is so much code that a TBZ, which reaches 32 KiB, might not reach what was put off.
func (c *coder) flushOften() {
	const often = 8 << 10
	if c.offset()-c.flushed > often {
		c.flush()
	}
}

// push keeps two registers on the stack, pop gives them back.
func (c *coder) push(a, b isa.Reg) {
	c.StorePair(a, b, arm64.Pre(sp, -pairSize))
	c.low += pairSize
	c.note(a == lr)
	if u := c.unwind; u != nil && u.open && !u.frame {
		c.below(u.depth + pairSize)
		if a == lr {
			c.say(cfaOffset|columnLR, byte(u.depth/8))
		}
	}
}

func (c *coder) pop(a, b isa.Reg) {
	c.LoadPair(a, b, arm64.Post(sp, pairSize))
	c.low -= pairSize
	c.note(false)
	if u := c.unwind; u != nil && u.open && !u.frame {
		c.below(u.depth - pairSize)
		if a == lr {
			c.say(cfaRestore | columnLR)
		}
	}
}

// pairSize is how many bytes two registers take; the stack pointer is a multiple of it at all times.
const pairSize = 16

// event appends code that writes one event and leaves every register but x16 and x17, and the flags, as they were. In a Go program nothing is in some
// others, see goevent.go.
func (c *coder) event(p place) {
	if c.cfg.Go != nil {
		c.goEvent(p)
		return
	}
	if p.alive {
		c.push(x16, x17)
	}
	if c.routines.shared[btoi(p.exit)] != 0 && !(c.cfg.Inside && p.inside) && c.keeping(p.id) == nil { // whose word has a mark more than shared routines know
		c.sharedEvent(p)
	} else {
		c.inlineEvent(p)
	}
	if p.alive {
		c.pop(x16, x17)
	}
}

func (c *coder) inlineEvent(p place) {
	off, slow := c.NewLabel(), c.NewLabel()
	if c.cfg.Lazy && !p.exit {
		c.slots = append(c.slots, entrySlot{id: p.id, whole: c.cfg.Inside && p.inside})
	}
	c.switchTest(p, off)
	if c.cfg.Chooses() {
		c.choose(p.exit, p.spDelta, func() { c.MovImmW(x16, c.chosenWord(p)) }, off)
	}
	if p.exit && c.cfg.Min {
		c.takeBack(func(r isa.Reg) { c.MovImmW(r, word(p.id, false)) }, p.spDelta, off)
	}
	if c.cfg.Chooses() || p.exit && c.cfg.Min {
		c.throughGate(off)
	} else {
		c.behindGate(off)
	}
	keep, written := c.keeping(p.id), off
	if keep != nil && p.exit {
		c.takeBefore(keep, slow)
	} else {
		c.take(slow)
	}
	c.time(p.exit)
	c.publish(p)
	if keep != nil {
		written = c.NewLabel()
		c.Place(written)
		if p.exit {
			c.carry(keep, off)
		} else {
			c.keepArguments(keep, p)
		}
	}
	c.Place(off)
	later := c.later()
	c.cold = append(c.cold, func() {
		later()
		c.Place(slow)
		c.callSlow(func() { c.MovImmW(x16, word(p.id, p.exit)) }, p.spDelta)
		c.B(written)
	})
}

// chosenWord is the word of a call's entry as it is told to what decides.
func (c *coder) chosenWord(p place) uint32 {
	w := word(p.id, false)
	if c.cfg.Inside && p.inside {
		w |= recordInside
	}
	return w
}

// spAtEntry appends the computation of the stack pointer at the function's entry, spAtEntryW that of its low half.
func (c *coder) spAtEntry(r isa.Reg, spDelta int32) { c.aboveSP(c.AddImm, r, spDelta) }

func (c *coder) spAtEntryW(r isa.Reg, spDelta int32) { c.aboveSP(c.AddImmW, r, spDelta) }

func (c *coder) aboveSP(add func(d, n isa.Reg, v int64), r isa.Reg, spDelta int32) {
	d := int64(spDelta + c.low)
	if d >= 1<<12 && d&(1<<12-1) != 0 {
		add(r, sp, d&^(1<<12-1))
		add(r, r, d&(1<<12-1))
		return
	}
	add(r, sp, d)
}

// callSlow appends the call of the slow path; word puts the event's word into w16.
func (c *coder) callSlow(word func(), spDelta int32) {
	word()
	c.push(lr, zr)
	c.spAtEntry(x17, spDelta)
	c.BlTo(c.routines.slow)
	c.pop(lr, zr)
}

// sharedEvent appends the call of the shared routine, with the event's word in w16. The link register's place on the stack has room for
// the word, too. A BL is among the instructions that may be exchanged while they run (see switch.go).
func (c *coder) sharedEvent(p place) {
	shared := c.routines.shared[btoi(p.exit)]
	switch d := p.lowered(); {
	case d == 0:
	case p.exit:
		shared = c.routines.lowerExit
	default:
		shared = c.routines.lower[d]
	}
	c.MovImmW(x16, word(p.id, p.exit))
	c.push(lr, x16)
	if c.cfg.Lazy && !p.exit {
		c.slots = append(c.slots, entrySlot{id: p.id})
	}
	c.callSwitch(p, shared)
	c.pop(lr, zr)
}

// emitShared appends the event routines that stubs call where there are many of them. The event's word is above the link register on the
// stack.
func (c *coder) emitShared() {
	var shared [2]uint64
	for i := range shared {
		shared[i] = c.sharedRoutine(i == 1, 0)
	}
	c.routines.shared, c.routines.lowerExit = shared, c.sharedRoutine(true, pairSize)
}

// sharedWord is where the event's word is on the stack of a shared routine.
const sharedWord = 8

// sharedRoutine appends one of them, for stubs whose stack pointer is spDelta below that at the function's entry.
func (c *coder) sharedRoutine(exit bool, spDelta int32) (addr uint64) {
	c.Align(64)
	c.beginRoutine()
	c.emitDoors(exit)
	addr = c.PC()
	c.low = 16
	off, slow := c.NewLabel(), c.NewLabel()
	entryWord := func(r isa.Reg) {
		c.Load(4, r, arm64.At(sp, sharedWord+c.low-pairSize))
		if exit {
			c.SubImmW(r, r, 1)
		}
	}
	if c.cfg.Chooses() {
		c.choose(exit, spDelta, func() { entryWord(x16) }, off)
	}
	if exit && c.cfg.Min {
		c.takeBack(entryWord, spDelta, off)
	}
	c.throughGate(off)
	c.take(slow)
	c.time(exit)
	c.spAtEntry(x16, spDelta)
	c.Store(4, x16, arm64.Post(x17, ring.EventWord-ring.EventSP))
	c.Load(4, x16, arm64.At(sp, sharedWord))
	c.StoreRelease(4, x16, x17)
	c.Place(off)
	c.Ret(lr)
	c.Place(slow)
	c.callSlow(func() { c.Load(4, x16, arm64.At(sp, sharedWord)) }, spDelta)
	c.Ret(lr)
	c.flush()
	c.endRoutine()
	return addr
}

// throughGate appends what comes before every claim: x16 becomes the thread's slot, x17 is clobbered. It goes to off when the gate is
// closed, recording is paused, or the thread isn't recorded.
func (c *coder) throughGate(off arm64.Label) {
	closed := c.whenClosed(c.PC(), off)
	c.loadAt(x16, c.cfg.Gate)
	c.Tbz(x16, gateOpen, closed)
	c.behindGate(off)
}

// behindGate appends what of this comes behind the gate's test, of which x16 is the gate's word.
func (c *coder) behindGate(off arm64.Label) {
	if !c.heedless {
		c.unlessPaused(off)
	}
	c.threadID(x17)
	c.AddLSL(x16, x16, x17, slotShift)
	if c.cfg.Threads { // see ring.SetOff
		c.Load(4, x17, arm64.At(x16, ring.SlotRegistered))
		c.LsrImm(x17, x17, 1)
		c.CbnzW(x17, off)
	}
}

// unlessPaused appends a jump to off while recording is paused, by the recorder or by the process itself; the slots are at x16. x17 is
// clobbered.
func (c *coder) unlessPaused(off arm64.Label) {
	if c.cfg.Held != 0 {
		c.MovImm(x17, c.cfg.Held)
		c.Load(4, x17, arm64.At(x17, 0))
		c.CbnzW(x17, off)
	}
	c.Load(4, x17, arm64.At(x16, ring.PausedOff-ring.SlotsOff))
	c.CbnzW(x17, off)
}

// slotShift is the logarithm of a slot's size.
const slotShift = 6

var _ [ring.SlotSize - 1<<slotShift]struct{}

// loadAt appends the loading of eight bytes at an address, from where it is near enough by one instruction.
func (c *coder) loadAt(r isa.Reg, addr uint64) {
	const near = 1<<20 - 4
	if d := int64(addr - c.PC()); d >= -near && d <= near {
		c.LoadLiteral(r, addr)
		return
	}
	c.AdrpTo(r, addr)
	c.Load(8, r, arm64.At(r, int32(addr&0xFFF)))
}

// unlessOff appends a jump to off if nothing is to be written: the gate is closed, children are held back, or recording is paused. Else x16 is the
// gate's word. x17 is clobbered.
func (c *coder) unlessOff(off arm64.Label) {
	c.loadAt(x16, c.cfg.Gate)
	c.Tbz(x16, gateOpen, off)
	if !c.heedless {
		c.unlessPaused(off)
	}
}

// take appends the taking of one event out of the claim word at x16, the beginning of a slot: x17 becomes its address. It goes to none
// when there is no space, with x16 as it was. The stack pointer is where it was then, too.
//
// LDADD is one instruction, and gives address and space at once, so a signal handler that runs stubs of its own, and may even change the
// chunk, comes wholly before or wholly after. Without it an exclusive pair does the same: what brings a handler in between clears the
// monitor, since an exception return does, so that the store fails.
func (c *coder) take(none arm64.Label) { c.takeBy(none, x0, x1, true) }

// takeBy is take with two registers of its own for exclusive pairs, which are kept if there is something in them.
func (c *coder) takeBy(none arm64.Label, by, failed isa.Reg, kept bool) {
	claim := c.NewLabel()
	c.claims = append(c.claims, claim)
	if c.atomics() {
		c.LoadLiteralAt(x17, claim)
		c.LoadAdd(8, x17, x17, x16, arm64.Order{})
	} else {
		again := c.NewLabel()
		if kept {
			c.push(by, failed)
		}
		c.LoadLiteralAt(by, claim)
		c.Place(again)
		c.LoadExclusive(8, x17, x16, false)
		c.Add(x17, x17, by)
		c.StoreExclusive(8, failed, x17, x16, false)
		c.CbnzW(failed, again)
		c.Sub(x17, x17, by)
		if kept {
			c.pop(by, failed)
		}
	}
	c.Tbz(x17, 63, none)
	c.AndImm(x17, x17, claimLow)
}

// time appends the store of the counter into the event at x17, if the event has one; x17 becomes where its stack pointer is. x16 is
// clobbered.
//
// The counter is read with no barrier. It may so be read before what the program has loaded and stored until then is done, and after what it
// does next has begun: by as much as the processor has under way, which is a few ticks at most. No event waits for the one before.
func (c *coder) time(exit bool) {
	if !c.cfg.Clock.Reads(exit) {
		c.AddImm(x17, x17, ring.EventSP)
		return
	}
	c.Mrs(x16, arm64.CNTVCTEL0)
	c.Store(8, x16, arm64.Post(x17, ring.EventSP))
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
