package arm64

import (
	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// The stubs of a function with predicates also call what is here, behind their events. The entry writes down when the call began, in a table of
// the open calls; the exit finds it there, and holds the call against the function's predicates. One that fires says so in the ring memory,
// freezes the rings if it is to, and wakes the recorder.
//
// A place of the table is taken by exchanging its key, and given back by making it 0 last, so that no two calls can have one. A call that is
// ended by longjmp or an exception leaves its place behind, which the next call with the same key takes; the recorder frees others. The
// recorder loads the key, then the time, then the rest, and the key once more; so the time is stored by release behind the rest, and 0 before
// anything is changed. It doesn't rely on more than that: what it makes of a call that is going just then it may as well have seen earlier.

// predicates appends the call of it, behind the event of a function with predicates. All but x16 and x17 are kept, and of these what was in them
// if there was anything.
func (c *coder) predicates(p place, w stub.Predicates) {
	if c.cfg.Go != nil {
		c.goPredicates(p, w)
		return
	}
	if p.alive {
		c.push(x16, x17)
	}
	off := c.NewLabel()
	c.whileOn(off)
	c.MovImm(x16, uint64(w.Count)<<predicateCount|uint64(w.First)<<predicateFirst|uint64(word(p.id, false)))
	c.push(lr, zr)
	c.spAtEntry(x17, p.spDelta)
	c.BlTo(c.routines.predicates[btoi(p.exit)])
	c.pop(lr, zr)
	c.Place(off)
	if p.alive {
		c.pop(x16, x17)
	}
}

// What x16 says, besides the word of the call's entry: the first predicate, and how many there are. The counts are below 256.
const (
	predicateFirst = 32
	predicateCount = 40
)

// predicatePath is one of the two routines. They are called with x16 as predicates sets it and x17 the stack pointer at the function's entry,
// and keep all but these.
//
// Registers inside: x4 the place in the table, x5 how many may be tried, x6 which it is, x7 the frame, x8 the number of the call or the time of
// its entry, x9 the entry's word, x10 stack pointer and word, x11 slot, x12 ring, x13 thread or goroutine, x14 the predicates, x16 as it was, x17 the
// duration.
type predicatePath struct {
	*slowPath
}

const (
	rPlace = x4
	rTries = x5
	rIndex = x6
	rFrom  = x8
	rKey   = rSP
	rCtx   = rNaps
	rTable = rTo
	rTook  = x17
)

func (c *coder) emitPredicates() {
	w := &predicatePath{&slowPath{coder: c}}
	c.routines.predicates = [2]uint64{w.enterRoutine(), w.leaveRoutine()}
}

// begin appends a routine's beginning, and returns its address.
func (w *predicatePath) begin(out arm64.Label) uint64 {
	w.Align(64)
	addr := w.PC()
	w.beginFrame()
	w.MovW(rWord, x16)
	w.MovW(x2, x17)
	w.OrrLSL(rKey, x2, rWord, 32)
	w.loadAt(x0, w.cfg.Gate)
	w.Tbz(x0, gateOpen, out)
	w.threadID(x1)
	w.CbzW(x1, out)
	w.AndImm(x0, x0, GateTag-1)
	w.AddLSL(rSlot, x0, x1, slotShift)
	w.SubImm(rRing, x0, ring.SlotsOff)
	w.caller()
	w.MovImm(rTable, w.cfg.Predicates)
	// The call's own place: neighbours' stacks differ in their upper bits, callers' in the lower.
	w.AddLSL(rIndex, rCtx, rCtx, 4)
	w.LsrImm(x2, x2, 4)
	w.Add(rIndex, rIndex, x2)
	w.LsrImm(x2, x2, 12)
	w.Add(rIndex, rIndex, x2)
	w.Add(rIndex, rIndex, rWord)
	w.Movz(rTries, ring.OpenCallTries, 0)
	return addr
}

func (w *predicatePath) place(field int32) arm64.Mem { return arm64.At(rPlace, field) }

// thisPlace makes rPlace the address of the place that rIndex counts to.
func (w *predicatePath) thisPlace() {
	w.AndImm(rPlace, rIndex, ring.OpenCalls-1)
	w.AddLSL(rPlace, rTable, rPlace, ring.OpenCallShift)
	w.addOff(rPlace, ring.OpenCallsOff)
}

// nextPlace goes to next with the place behind that, or on when all have been tried.
func (w *predicatePath) nextPlace(next arm64.Label) {
	w.AddImm(rIndex, rIndex, 1)
	w.SubImm(rTries, rTries, 1)
	w.Cbnz(rTries, next)
}

// firstPredicate makes r the address of the first of the function's predicates. x0 is clobbered.
func (w *predicatePath) firstPredicate(r isa.Reg) {
	w.Ubfx(x0, x16, predicateFirst, predicateCount-predicateFirst)
	w.AddLSL(r, rTable, x0, ring.PredicateShift)
}

func (w *predicatePath) enterRoutine() uint64 {
	out, next, other, free, fill := w.NewLabel(), w.NewLabel(), w.NewLabel(), w.NewLabel(), w.NewLabel()
	addr := w.begin(out)
	w.firstPredicate(x15)
	w.AddImm(x15, x15, ring.PredicateCalls)
	w.Movz(x0, 1, 0)
	w.fetchAdd(8, x0, rFrom, x15, x2, x3, arm64.Order{})
	w.AddImm(rFrom, rFrom, 1) // the call's number
	w.Place(next)
	w.thisPlace()
	w.Load(8, x0, w.place(ring.OpenSPWord))
	w.Cbz(x0, free)
	w.Cmp(x0, rKey)
	w.BCond(arm64.CondNE, other)
	w.Load(8, x0, w.place(ring.OpenCtx))
	w.Cmp(x0, rCtx)
	w.BCond(arm64.CondNE, other)
	w.Store(8, zr, w.place(ring.OpenFrom)) // left behind: no other call can have the same stack now
	w.DmbStore()
	w.B(fill)
	w.Place(free)
	w.AddImm(x15, rPlace, ring.OpenSPWord)
	w.swapIf(8, x0, rKey, x15, x1, x2, bothWays, other)
	w.B(fill)
	w.Place(other)
	w.nextPlace(next)
	w.AddImm(x15, rRing, ring.HdrUntracked)
	w.Movz(x0, 1, 0)
	w.fetchAdd(8, x0, x1, x15, x2, x3, arm64.Order{})
	w.B(out)
	w.Place(fill)
	w.Store(8, rCtx, w.place(ring.OpenCtx))
	w.Store(8, rFrom, w.place(ring.OpenNumber))
	w.Mrs(x0, arm64.CNTVCTEL0)
	w.storeRelease(8, x0, rPlace, ring.OpenFrom)
	w.Place(out)
	w.endFrame()
	return addr
}

func (w *predicatePath) leaveRoutine() uint64 {
	out, next, other, found := w.NewLabel(), w.NewLabel(), w.NewLabel(), w.NewLabel()
	addr := w.begin(out)
	w.Place(next)
	w.thisPlace()
	w.Load(8, x0, w.place(ring.OpenSPWord))
	w.Cmp(x0, rKey)
	w.BCond(arm64.CondNE, other)
	w.Load(8, x0, w.place(ring.OpenCtx))
	w.Cmp(x0, rCtx)
	w.BCond(arm64.CondEQ, found)
	w.Place(other)
	w.nextPlace(next)
	w.B(out) // it was entered before, or found no place

	w.Place(found)
	w.Mrs(rTook, arm64.CNTVCTEL0)
	w.Load(8, rFrom, w.place(ring.OpenFrom))
	w.Sub(rTook, rTook, rFrom)
	w.Load(8, rIndex, w.place(ring.OpenNumber))
	w.Store(8, zr, w.place(ring.OpenFrom))
	w.Store(8, zr, w.place(ring.OpenCtx))
	w.storeRelease(8, zr, rPlace, ring.OpenSPWord)
	w.Tbnz(rIndex, openFiredBit, out)
	w.firstPredicate(rTable) // from here on the predicate
	w.Ubfx(rTries, x16, predicateCount, 8)
	w.each(out)
	w.Place(out)
	w.endFrame()
	return addr
}

// openFiredBit is that of ring.OpenFired.
const openFiredBit = 63

var _ [0]struct{} = [uint64(ring.OpenFired) - 1<<openFiredBit]struct{}{}

// each goes through the function's predicates: rIndex is the call's number, rTries how many there are. The first that fires is enough.
func (w *predicatePath) each(out arm64.Label) {
	each, number, result, signed, test := w.NewLabel(), w.NewLabel(), w.NewLabel(), w.NewLabel(), w.NewLabel()
	outside, fire, next := w.NewLabel(), w.NewLabel(), w.NewLabel()
	field := func(off int32) arm64.Mem { return arm64.At(rTable, off) }
	w.Place(each)
	w.Load(4, x0, field(ring.PredicateKind))
	w.Mov(x1, rTook)
	w.CmpImmW(x0, ring.PredicateDuration)
	w.BCond(arm64.CondEQ, test)
	w.CmpImmW(x0, ring.PredicateNumber)
	w.BCond(arm64.CondEQ, number)
	w.CmpImmW(x0, ring.PredicateResult)
	w.BCond(arm64.CondEQ, result)
	w.Place(next)
	w.AddImm(rTable, rTable, 1<<ring.PredicateShift)
	w.SubImm(rTries, rTries, 1)
	w.Cbnz(rTries, each)
	w.B(out)

	w.Place(number)
	w.Mov(x1, rIndex)
	w.B(test)
	w.Place(result)
	w.result(x1)
	w.Load(4, x2, field(ring.PredicateShiftL))
	w.Load(4, x3, field(ring.PredicateSign))
	w.Lsl(x1, x1, x2)
	w.CbnzW(x3, signed)
	w.Lsr(x1, x1, x2)
	w.B(test)
	w.Place(signed)
	w.Asr(x1, x1, x2)
	w.Place(test)
	w.Load(4, x3, field(ring.PredicateNot))
	w.LoadPair(x0, x2, field(ring.PredicateLow))
	w.Cmp(x1, x0)
	w.BCond(arm64.CondLT, outside)
	w.Cmp(x1, x2)
	w.BCond(arm64.CondGT, outside)
	w.CbzW(x3, fire)
	w.B(next)
	w.Place(outside)
	w.CbzW(x3, next)
	w.Place(fire)
	w.fire(out)
}

var _ [0]struct{} = [ring.PredicateHigh - ring.PredicateLow - 8]struct{}{}

// result loads what the function returns in x0, which is in the frame.
func (w *predicatePath) result(r isa.Reg) { w.Load(8, r, arm64.At(rFrame, 0)) }

// fire says what has fired: the predicate at rTable, whose call began when rFrom says and took rTook. It has the rings freeze after
// a while and wakes the recorder, once; until that has looked others only count. It goes to out.
func (w *predicatePath) fire(out arm64.Label) {
	w.AddImm(x15, rRing, ring.HdrFired)
	w.Movz(x0, 1, 0)
	w.fetchAdd(4, x0, rIndex, x15, x2, x3, bothWays)
	w.AddImmW(rIndex, rIndex, 1)
	w.AndImm(rPlace, rIndex, ring.Firings-1)
	w.MovImm(x0, w.cfg.Predicates)
	w.AddLSL(rPlace, x0, rPlace, ring.FiringShift)
	w.addOff(rPlace, ring.FiringsOff)
	w.writeFiring()
	w.ifZero(8, w.hdr(ring.HdrArmed), out)
	w.AddImm(x15, rRing, ring.HdrPool)
	w.Movz(x0, ring.PoolOpen, 0)
	w.Load(8, x3, w.hdr(ring.HdrGrace))
	w.swapIf(8, x0, x3, x15, x1, x2, bothWays, out)
	w.Add(x0, rFrom, rTook)
	w.Store(8, x0, w.hdr(ring.HdrFrozenAt))
	// Others may write over what is in the ring of firings before the recorder looks.
	w.MovImm(rPlace, w.cfg.Predicates)
	w.addOff(rPlace, ring.FreezerOff)
	w.writeFiring()
	// As in the slow path: system calls are made only while counted, with the gate seen open since.
	closed := w.NewLabel()
	w.saveVectors()
	w.count(1)
	w.Dmb()
	w.unlessOpen(closed)
	w.AddImm(x0, rRing, ring.HdrFired)
	w.Movz(x1, futexWake, 0)
	w.Movz(x2, 1, 0)
	w.call(sysFutex)
	w.Place(closed)
	w.count(-1)
	w.restoreVectors()
}

// writeFiring writes firing rIndex at rPlace. Its number is 0 before anything else is changed, and stored last, by release.
func (w *predicatePath) writeFiring() {
	f := w.place
	w.Store(4, zr, f(ring.FiringNumber))
	w.DmbStore()
	w.MovImm(x0, w.cfg.Predicates)
	w.Sub(x0, rTable, x0)
	w.LsrImm(x0, x0, ring.PredicateShift)
	w.Store(4, x0, f(ring.FiringPredicate))
	w.Store(8, rCtx, f(ring.FiringCtx))
	w.Store(8, rKey, f(ring.FiringSPWord))
	w.Store(8, rFrom, f(ring.FiringFrom))
	w.Add(x0, rFrom, rTook)
	w.Store(8, x0, f(ring.FiringTo))
	w.result(x0)
	w.Store(8, x0, f(ring.FiringResult))
	w.tidOfSlot(x0)
	w.Store(4, x0, f(ring.FiringTID))
	w.storeRelease(4, rIndex, rPlace, ring.FiringNumber)
}
