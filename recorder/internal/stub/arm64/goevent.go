package arm64

import (
	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/golang"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/reel"
)

// A Go function has nothing of its own in x16, x17, x19 to x25, x27 and the flags at an entry, behind the stack check, and at a return
// (cmd/compile/abi-internal.md). So these are all that an event uses: below the stack pointer there is the frame pointer, which its caller is to
// find again, and then perhaps no more of the goroutine's stack. What a thread's ring is full of, or when another goroutine runs on it than
// before, is done on a stack of callreel's own. The goroutine is in x28 all through Go's code, handlers of signals included.
//
// What else there is to say of goroutines and signal handlers is said at the same of x86-64.
const (
	goM     isa.Reg = 19 // struct m
	goTID   isa.Reg = 20
	goID    isa.Reg = 21 // of the goroutine
	goLo    isa.Reg = 22 // where the goroutine's stack begins
	goHi    isa.Reg = 23 // and ends
	goSP    isa.Reg = 24
	goKey   isa.Reg = 25 // where it is whose events the thread wrote last
	goOther isa.Reg = 27
	goG     isa.Reg = golang.ARM64G
)

// Of the slow path, which keeps all from x18 on.
const (
	slowWord   isa.Reg = 19 // the event's word, and in the upper half how far the stack pointer is below that at the function's entry
	slowReturn isa.Reg = 20 // where it goes on
	slowTID    isa.Reg = 21
	slowID     isa.Reg = 22
	slowSlot   isa.Reg = 23
)

// goEvent appends code that writes one event of a Go function.
func (c *coder) goEvent(p place) {
	off, slow := c.NewLabel(), c.NewLabel()
	c.goSlot(off, slow)
	c.takeBy(slow, goOther, goM, false)
	c.goWrite(p)
	c.Place(off)
	c.cold = append(c.cold, func() {
		c.Place(slow)
		c.goSlowly(p, off)
	})
}

// goSlot appends what comes before every claim: x16 becomes the thread's slot. It goes to off where nothing is to be written, and to slow where
// another goroutine runs than the thread's last, or none.
func (c *coder) goSlot(off, slow arm64.Label) {
	c.unlessOff(off)
	c.Load(8, goM, arm64.At(goG, golang.GM))
	c.Cbz(goM, off) // the runtime has only begun
	c.Load(4, goTID, arm64.At(goM, c.cfg.Go.ProcID))
	c.onStack(slow)
	c.Load(8, goID, arm64.At(goG, c.cfg.Go.GoID))
	c.keyOf(goTID)
	c.Load(8, goOther, arm64.At(goKey, 0))
	c.Cmp(goOther, goID)
	c.BCond(arm64.CondNE, slow)
	c.AddLSL(x16, x16, goTID, slotShift)
}

// goWrite appends the writing of the event at x17. goSP and goHi are as onStack sets them.
func (c *coder) goWrite(p place) {
	c.Mrs(x16, arm64.CNTVCTEL0)
	c.Store(8, x16, arm64.Post(x17, ring.EventSP))
	if p.spDelta != 0 {
		c.AddImm(goSP, goSP, int64(p.spDelta))
	}
	c.SubW(goSP, goSP, goHi)
	w := word(p.id, p.exit)
	c.putWord(goSP, w)
	c.StoreRelease(8, goSP, x17)
}

// goSlowly appends the way by the slow path, which goes on at off.
func (c *coder) goSlowly(p place, off arm64.Label) {
	c.goPlace(p)
	c.Adr(slowReturn, off)
	c.BTo(c.routines.goSlow)
}

// goPlace makes slowWord say which event it is.
func (c *coder) goPlace(p place) {
	c.MovImm(slowWord, uint64(uint32(p.spDelta))<<32|uint64(word(p.id, p.exit)))
}

// onStack appends a jump to no where the stack pointer, which goSP becomes, isn't in the stack of the goroutine.
func (c *coder) onStack(no arm64.Label) {
	c.LoadPair(goLo, goHi, arm64.At(goG, golang.StackLo))
	c.MovSP(goSP, sp)
	c.Cmp(goSP, goLo)
	c.BCond(arm64.CondLO, no)
	c.Cmp(goSP, goHi)
	c.BCond(arm64.CondHI, no)
}

var _ [golang.StackHi - golang.StackLo - 8]struct{}

// keyOf makes goKey the place of a thread's key. x16 has the address of the slots, with a tag.
func (c *coder) keyOf(tid isa.Reg) {
	c.MovImm(goKey, ring.GoKeysOff-ring.SlotsOff)
	c.Add(goKey, goKey, x16)
	c.AddLSL(goKey, goKey, tid, 3)
}

// emitGoSlow appends what stubs of a Go program jump to when there is another goroutine than the thread's last, or no space, or no event to be
// written since it is a signal handler that runs. For events with a payload goOther has the address of what gathers it.
//
// Before the event of another goroutine goes one that names it, see reel.Switch. It counts as the exit of an accepted call, so it is not dropped as
// long as there is a reserve; if it is lost, the thread tries again at its next event, and this one is dropped: it would be taken for the other
// goroutine's.
func (c *coder) emitGoSlow(payload bool) uint64 {
	slow := c.routines.slow
	c.Align(64)
	addr := c.PC()
	skip, same, lost, out := c.NewLabel(), c.NewLabel(), c.NewLabel(), c.NewLabel()
	c.toOwnStack(skip)
	if payload {
		slow = c.routines.slowGather
		c.slowEntry(x16)
		c.push(x16, zr)
		c.push(lr, goOther)
	} else {
		c.push(lr, zr)
	}

	c.loadAt(x16, c.cfg.Gate)
	c.Tbz(x16, gateOpen, out)
	c.Load(8, slowID, arm64.At(goG, c.cfg.Go.GoID))
	c.AddLSL(slowSlot, x16, slowTID, slotShift)
	c.keyOf(slowTID)
	c.Load(8, x17, arm64.At(goKey, 0))
	c.Cmp(x17, slowID)
	c.BCond(arm64.CondEQ, same)
	c.Load(8, goOther, arm64.At(slowSlot, ring.SlotLostExits))
	c.LsrImm(x16, slowID, 32)
	c.LslImmW(x16, x16, 1)
	c.MovImmW(x17, reel.SwitchWord)
	c.OrrW(x16, x16, x17)
	c.MovW(x17, slowID)
	c.OrrImm(x17, x17, 1<<32) // above any stack pointer: never below the mark of what is dropped
	c.BlTo(c.routines.slow)
	c.loadAt(x16, c.cfg.Gate)
	c.Tbz(x16, gateOpen, out)
	c.Load(8, x16, arm64.At(slowSlot, ring.SlotLostExits))
	c.Cmp(x16, goOther)
	c.BCond(arm64.CondNE, lost)
	c.Store(8, slowID, arm64.At(goKey, 0))

	c.Place(same)
	c.slowEventSP(x17)
	c.MovW(x16, slowWord)
	c.BlTo(slow)

	c.Place(out)
	c.pop(lr, zr)
	if payload {
		c.pop(x16, zr)
	}
	c.fromOwnStack(skip)

	c.Place(lost)
	c.Tbnz(slowWord, 0, out)
	c.Load(8, x16, arm64.At(slowSlot, ring.SlotDropped))
	c.AddImm(x16, x16, 1)
	c.Store(8, x16, arm64.At(slowSlot, ring.SlotDropped))
	c.B(out)
	return addr
}

// goEntryAt is where emitGoSlow has put the stack pointer at the function's entry, or at the marker's event, seen from the slow path's frame.
const goEntryAt = frameSize + pairSize

// emitGo appends what the stubs of a Go program call besides.
func (c *coder) emitGo(fns []stub.Probe) {
	to := c.routines
	c.emitGoStacks()
	to.goSlow = c.emitGoSlow(false)
	if c.cfg.Predicates != 0 {
		c.emitPredicates()
		to.goPredicates = [2]uint64{c.emitGoPredicates(false), c.emitGoPredicates(true)}
	}
	if len(c.cfg.Captures) > 0 {
		c.emitCaptures(fns)
		to.goGather = c.emitGoSlow(true)
	}
}

// emitGoStacks appends where the stacks of callreel's own are.
func (c *coder) emitGoStacks() {
	c.Align(8)
	c.routines.goStacks = c.PC()
	c.Data64(c.cfg.Go.Stacks + ring.GoStackSize)
}

// toOwnStack appends the change to the thread's own stack of callreel's: goSP becomes the goroutine's stack pointer, slowTID the thread's ID. It jumps
// to skip where that can't be: in a signal handler, or while the thread is set up. goOther and slowWord stay.
func (c *coder) toOwnStack(skip arm64.Label) {
	c.Load(8, x16, arm64.At(goG, golang.GM))
	c.Cbz(x16, skip)
	c.Load(8, x17, arm64.At(x16, c.cfg.Go.ProcID+golang.GsignalBehind))
	c.Cmp(x17, goG)
	c.BCond(arm64.CondEQ, skip)
	c.onStack(skip)
	c.Load(4, slowTID, arm64.At(x16, c.cfg.Go.ProcID))
	c.CbzW(slowTID, skip)
	c.loadAt(x16, c.routines.goStacks)
	c.AddLSL(x16, x16, slowTID, ring.GoStackShift)
	c.MovSP(sp, x16)
}

// fromOwnStack appends the way back to the goroutine's, and to slowReturn. skip leads behind all but that.
func (c *coder) fromOwnStack(skip arm64.Label) {
	c.MovSP(sp, goSP)
	c.Place(skip)
	c.Ret(slowReturn)
}

// slowEntry appends the computation of the stack pointer that the upper half of slowWord says.
func (c *coder) slowEntry(r isa.Reg) {
	c.AsrImm(r, slowWord, 32)
	c.Add(r, goSP, r)
}

// slowEventSP appends that of an event's: less the end of the goroutine's stack. x16 is clobbered.
func (c *coder) slowEventSP(r isa.Reg) {
	c.slowEntry(r)
	c.Load(8, x16, arm64.At(goG, golang.StackHi))
	c.Sub(r, r, x16)
	c.MovW(r, r)
}
