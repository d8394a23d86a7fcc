package amd64

import (
	"encoding/binary"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// The stubs of a function with predicates also call what is here, behind their events. The entry writes down when the call began, in a table of the
// open calls; the exit finds it there, and holds the call against the function's predicates. One that fires says so in the ring memory,
// freezes the rings if it is to, and wakes the recorder.
//
// A place of the table is taken by exchanging its key, and given back by making it 0 last, so that no two calls can have one. A call that
// is ended by longjmp or an exception leaves its place behind, which the next call with the same key takes; the recorder frees others.

// predicateRoutines is where the code of predicates is, once emitted.
type predicateRoutines struct {
	enter, leave uint64
	at           uint64 // where cfg.Predicates is
}

// predicates appends the call of it, behind the event of a function with predicates. Registers and flags are kept as by an event.
func (cEvents) predicates(c *coder, w stub.Predicates, id uint32, exit bool, spDelta int32) {
	off := c.NewLabel()
	c.Store64(amd64.At(amd64.RSP, saveRAX), amd64.RAX)
	c.saveFlags(0)
	c.whileOn(amd64.RDX, off, off)
	c.MovImm64(amd64.RCX, uint64(w.Count)<<40|uint64(w.First)<<32|uint64(word(id, false)))
	c.Lea(amd64.RDX, amd64.At(amd64.RSP, spDelta))
	if exit {
		c.Load64(amd64.RAX, amd64.At(amd64.RSP, saveRAX))
		c.CallTo(c.routines.predicates.leave)
	} else {
		c.CallTo(c.routines.predicates.enter)
	}
	c.Place(off)
	c.restore(0)
}

// predicatePath is one of the two routines. They are called with RCX as predicates sets it, RDX the stack pointer at the function's entry and, at an
// exit, RAX what the function returns, and may clobber these and the flags. R10 is the thread or goroutine for a Go program, whose
// routines are called on a stack of callreel's own.
//
// Registers inside: RBX what RCX says, RBP SP and word, RSI the predicates, RDI the place in the table, R8 slot, R9 ring, R10 thread or
// goroutine, R11 how many places may be tried, R12 result, R13 duration.
type predicatePath struct {
	*slowPath
}

func (c *coder) emitPredicates() {
	c.Align(8)
	c.routines.predicates.at = c.PC()
	c.Raw(binary.LittleEndian.AppendUint64(nil, c.cfg.Predicates)...)
	w := &predicatePath{&slowPath{coder: c}}
	c.routines.predicates.enter = w.enterRoutine()
	c.routines.predicates.leave = w.leaveRoutine()
}

// begin appends a routine's beginning, and returns its address.
func (w *predicatePath) begin(out amd64.Label) uint64 {
	w.Align(64)
	addr := w.PC()
	w.beginKeeping(saved)
	w.Mov(amd64.RBX, amd64.RCX)
	w.Mov(amd64.R12, amd64.RAX)
	w.Mov32(amd64.RBP, amd64.RCX)
	w.ShlImm(amd64.RBP, 32)
	w.Mov32(amd64.RDX, amd64.RDX)
	w.Or(amd64.RBP, amd64.RDX)
	w.Load64(amd64.R8, amd64.AtAddr(w.cfg.Gate))
	w.Test(amd64.R8, amd64.R8)
	w.Jcc(amd64.CondLE, out)
	w.Lea(amd64.R9, amd64.At(amd64.R8, -ring.SlotsOff))
	w.threadID(amd64.RAX)
	w.Test(amd64.RAX, amd64.RAX)
	w.Jcc(amd64.CondE, out)
	if w.lang.callsStay {
		w.Mov32(amd64.R10, amd64.RAX)
	}
	w.Shl32Imm(amd64.RAX, 3)
	w.Lea(amd64.R8, amd64.AtIndex(amd64.R8, amd64.RAX, 8, 0))
	w.Load64(amd64.RSI, amd64.AtAddr(w.routines.predicates.at))
	// The call's own place: neighbours' stacks differ in their upper bits, callers' in the lower.
	w.Mov(amd64.RAX, amd64.R10)
	w.ShlImm(amd64.RAX, 4)
	w.Add(amd64.RAX, amd64.R10)
	w.Mov32(amd64.RDX, amd64.RBP)
	w.ShrImm(amd64.RDX, 4)
	w.Add(amd64.RAX, amd64.RDX)
	w.ShrImm(amd64.RDX, 12)
	w.Add(amd64.RAX, amd64.RDX)
	w.Mov(amd64.RDX, amd64.RBP)
	w.ShrImm(amd64.RDX, 32)
	w.Add(amd64.RAX, amd64.RDX)
	w.Mov(amd64.RDI, amd64.RAX)
	w.MovImm32(amd64.R11, ring.OpenCallTries)
	return addr
}

func (w *predicatePath) end() {
	w.returnWith(saved)
	w.endRoutine()
}

func (w *predicatePath) place(field int32) amd64.Mem { return amd64.At(amd64.RCX, field) }

// thisPlace makes RCX the address of the place that RDI counts to.
func (w *predicatePath) thisPlace() {
	w.Mov32(amd64.RCX, amd64.RDI)
	w.And32Imm(amd64.RCX, ring.OpenCalls-1)
	w.ShlImm(amd64.RCX, ring.OpenCallShift)
	w.Lea(amd64.RCX, amd64.AtIndex(amd64.RSI, amd64.RCX, 1, ring.OpenCallsOff))
}

// nextPlace goes to next with the place behind that, or on when all have been tried.
func (w *predicatePath) nextPlace(next amd64.Label) {
	w.Lea(amd64.RDI, amd64.At(amd64.RDI, 1))
	w.Lea(amd64.R11, amd64.At(amd64.R11, -1))
	w.Test(amd64.R11, amd64.R11)
	w.Jcc(amd64.CondNE, next)
}

func (w *predicatePath) enterRoutine() uint64 {
	out, next, other, free, fill := w.NewLabel(), w.NewLabel(), w.NewLabel(), w.NewLabel(), w.NewLabel()
	addr := w.begin(out)
	w.firstPredicate(amd64.RDX)
	w.MovImm32(amd64.R13, 1)
	w.LockXadd64(amd64.At(amd64.RDX, ring.PredicateCalls), amd64.R13)
	w.Lea(amd64.R13, amd64.At(amd64.R13, 1))
	w.Place(next)
	w.thisPlace()
	w.Load64(amd64.RAX, w.place(ring.OpenSPWord))
	w.Test(amd64.RAX, amd64.RAX)
	w.Jcc(amd64.CondE, free)
	w.Cmp(amd64.RAX, amd64.RBP)
	w.Jcc(amd64.CondNE, other)
	w.CmpMem(amd64.R10, w.place(ring.OpenCtx))
	w.Jcc(amd64.CondNE, other)
	w.Store64Imm(w.place(ring.OpenFrom), 0) // left behind: no other call can have the same stack now
	w.Jmp(fill)
	w.Place(free)
	w.LockCmpxchg64(w.place(ring.OpenSPWord), amd64.RBP)
	w.Jcc(amd64.CondE, fill)
	w.Place(other)
	w.nextPlace(next)
	w.MovImm32(amd64.RCX, 1)
	w.LockXadd64(w.hdr(ring.HdrUntracked), amd64.RCX)
	w.Jmp(out)
	w.Place(fill)
	w.Store64(w.place(ring.OpenCtx), amd64.R10)
	w.Store64(w.place(ring.OpenNumber), amd64.R13)
	w.ticks()
	w.Store64(w.place(ring.OpenFrom), amd64.RAX)
	w.Place(out)
	w.end()
	return addr
}

// ticks makes RAX the time-stamp counter; RDX is clobbered.
func (w *predicatePath) ticks() {
	w.Rdtsc()
	w.ShlImm(amd64.RDX, 32)
	w.Or(amd64.RAX, amd64.RDX)
}

// firstPredicate makes r the address of the first of the function's predicates.
func (w *predicatePath) firstPredicate(r amd64.Reg) {
	w.Mov(r, amd64.RBX)
	w.ShrImm(r, 32)
	w.And32Imm(r, ring.MaxPredicates-1)
	w.ShlImm(r, ring.PredicateShift)
	w.Lea(r, amd64.AtIndex(amd64.RSI, r, 1, ring.PredicatesOff))
}

func (w *predicatePath) leaveRoutine() uint64 {
	out, next, other := w.NewLabel(), w.NewLabel(), w.NewLabel()
	each, number, result, test, nextPredicate := w.NewLabel(), w.NewLabel(), w.NewLabel(), w.NewLabel(), w.NewLabel()
	outside, fire := w.NewLabel(), w.NewLabel()
	addr := w.begin(out)
	w.Place(next)
	w.thisPlace()
	w.CmpMem(amd64.RBP, w.place(ring.OpenSPWord))
	w.Jcc(amd64.CondNE, other)
	w.CmpMem(amd64.R10, w.place(ring.OpenCtx))
	w.Jcc(amd64.CondNE, other)
	found := w.NewLabel()
	w.Jmp(found)
	w.Place(other)
	w.nextPlace(next)
	w.Jmp(out) // it was entered before, or found no place

	w.Place(found)
	w.ticks()
	w.Load64(amd64.R11, w.place(ring.OpenFrom))
	w.Mov(amd64.R13, amd64.RAX)
	w.Sub(amd64.R13, amd64.R11)
	w.Load64(amd64.RDI, w.place(ring.OpenNumber))
	w.Store64Imm(w.place(ring.OpenFrom), 0)
	w.Store64Imm(w.place(ring.OpenCtx), 0)
	w.Store64Imm(w.place(ring.OpenSPWord), 0)
	w.Test(amd64.RDI, amd64.RDI) // its sign is OpenFired
	w.Jcc(amd64.CondS, out)
	w.Push(amd64.R11) // when it was entered
	if w.unwind != nil {
		w.below(w.unwind.depth + 8)
	}
	w.firstPredicate(amd64.RDX)
	w.Mov(amd64.RSI, amd64.RDX) // from here on the predicate

	w.Place(each)
	w.Load32(amd64.RAX, amd64.At(amd64.RSI, ring.PredicateKind))
	w.Mov(amd64.RDX, amd64.R13)
	w.CmpImm32(amd64.RAX, ring.PredicateDuration)
	w.Jcc(amd64.CondE, test)
	w.CmpImm32(amd64.RAX, ring.PredicateNumber)
	w.Jcc(amd64.CondE, number)
	w.CmpImm32(amd64.RAX, ring.PredicateResult)
	w.Jcc(amd64.CondE, result)
	w.Place(nextPredicate)
	w.Lea(amd64.RSI, amd64.At(amd64.RSI, 1<<ring.PredicateShift))
	// The count is in bits 40 to 47, and the first in those below: one predicate less, one further.
	w.MovImm64(amd64.RAX, 1<<64-1<<40+1<<32)
	w.Add(amd64.RBX, amd64.RAX)
	w.Mov(amd64.RAX, amd64.RBX)
	w.ShrImm(amd64.RAX, 40)
	w.Test(amd64.RAX, amd64.RAX)
	w.Jcc(amd64.CondNE, each)
	done := w.NewLabel()
	w.Place(done)
	w.Pop(amd64.R11)
	if w.unwind != nil {
		w.below(w.unwind.depth - 8)
	}
	w.Jmp(out)

	if w.unwind != nil {
		w.below(w.unwind.depth + 8)
	}
	w.Place(number)
	w.Mov(amd64.RDX, amd64.RDI)
	w.Jmp(test)
	w.Place(result)
	signed := w.NewLabel()
	w.Mov(amd64.RDX, amd64.R12)
	w.Load32(amd64.RCX, amd64.At(amd64.RSI, ring.PredicateShiftL))
	w.ShlCL(amd64.RDX)
	w.CmpMem32Imm8(amd64.At(amd64.RSI, ring.PredicateSign), 0)
	w.Jcc(amd64.CondNE, signed)
	w.ShrCL(amd64.RDX)
	w.Jmp(test)
	w.Place(signed)
	w.SarCL(amd64.RDX)
	w.Place(test)
	w.CmpMem(amd64.RDX, amd64.At(amd64.RSI, ring.PredicateLow))
	w.Jcc(amd64.CondL, outside)
	w.CmpMem(amd64.RDX, amd64.At(amd64.RSI, ring.PredicateHigh))
	w.Jcc(amd64.CondG, outside)
	w.CmpMem32Imm8(amd64.At(amd64.RSI, ring.PredicateNot), 0)
	w.Jcc(amd64.CondE, fire)
	w.Jmp(nextPredicate)
	w.Place(outside)
	w.CmpMem32Imm8(amd64.At(amd64.RSI, ring.PredicateNot), 0)
	w.Jcc(amd64.CondE, nextPredicate)

	w.Place(fire)
	w.fire()
	w.Jmp(done) // one is enough
	if w.unwind != nil {
		w.below(w.unwind.depth - 8)
	}
	w.Place(out)
	w.end()
	return addr
}

// writeFiring writes firing RDI where f says, which must be by RDX. RAX is clobbered.
func (w *predicatePath) writeFiring(f func(field int32) amd64.Mem) {
	w.Store32Imm(f(ring.FiringNumber), 0)
	w.Mov(amd64.RAX, amd64.RSI)
	w.SubMem(amd64.RAX, amd64.AtAddr(w.routines.predicates.at))
	w.ShrImm(amd64.RAX, ring.PredicateShift)
	w.Store32(f(ring.FiringPredicate), amd64.RAX)
	w.Store64(f(ring.FiringCtx), amd64.R10)
	w.Store64(f(ring.FiringSPWord), amd64.RBP)
	w.Load64(amd64.RAX, amd64.At(amd64.RSP, 0))
	w.Store64(f(ring.FiringFrom), amd64.RAX)
	w.Add(amd64.RAX, amd64.R13)
	w.Store64(f(ring.FiringTo), amd64.RAX)
	w.Store64(f(ring.FiringResult), amd64.R12)
	w.threadID(amd64.RAX)
	w.Store32(f(ring.FiringTID), amd64.RAX)
	w.Store32(f(ring.FiringNumber), amd64.RDI)
}

// fire says what has fired: the predicate at RSI, whose call began when the top of the stack says and took R13. It has the rings
// freeze after a while and wakes the recorder, once; until that has looked others only count. Nearly all registers are clobbered.
func (w *predicatePath) fire() {
	counted := w.NewLabel()
	w.MovImm32(amd64.RDI, 1)
	w.LockXadd32(w.hdr(ring.HdrFired), amd64.RDI)
	w.Lea(amd64.RDI, amd64.At(amd64.RDI, 1))
	w.Mov32(amd64.RDX, amd64.RDI)
	w.And32Imm(amd64.RDX, ring.Firings-1)
	w.ShlImm(amd64.RDX, ring.FiringShift)
	w.AddMem(amd64.RDX, amd64.AtAddr(w.routines.predicates.at))
	f := func(field int32) amd64.Mem { return amd64.At(amd64.RDX, ring.FiringsOff+field) }
	w.writeFiring(f)
	w.CmpMem64Imm8(w.hdr(ring.HdrArmed), 0)
	w.Jcc(amd64.CondE, counted)
	w.MovImm32(amd64.RAX, ring.PoolOpen)
	w.Load64(amd64.RCX, w.hdr(ring.HdrGrace))
	w.LockCmpxchg64(w.hdr(ring.HdrPool), amd64.RCX)
	w.Jcc(amd64.CondNE, counted)
	w.Load64(amd64.RAX, f(ring.FiringTo))
	w.Store64(w.hdr(ring.HdrFrozenAt), amd64.RAX)
	// Others may write over what is in the ring of firings before the recorder looks.
	w.Load64(amd64.RDX, amd64.AtAddr(w.routines.predicates.at))
	w.writeFiring(func(field int32) amd64.Mem { return amd64.At(amd64.RDX, ring.FreezerOff+field) })
	// As in the slow path: system calls are made only while counted, with the gate seen open since.
	closed := w.NewLabel()
	w.count(1)
	w.CmpMem64Imm8(amd64.AtAddr(w.cfg.Gate), 0)
	w.Jcc(amd64.CondLE, closed)
	w.Lea(amd64.RDI, w.hdr(ring.HdrFired))
	w.MovImm32(amd64.RSI, futexWake)
	w.MovImm32(amd64.RDX, 1)
	w.MovImm32(amd64.RAX, sysFutex)
	w.Syscall()
	w.Place(closed)
	w.count(-1)
	w.Place(counted)
}
