package amd64

import (
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// slowPath is the code that runs when a thread's chunk is full, or when it has none, or while it drops: once in some
// 4,000 events. It is called with ECX the event's word, RDX the stack pointer at the function's entry and EAX 8×TID, and
// may clobber RAX, RCX, RDX and flags, which the stub has saved.
//
// While the slot changes all signals are blocked, so handlers in this thread never see it half changed; the slot
// belongs to this thread alone, so nothing else does. A signal that came between the failed claim and the blocking may
// have changed the chunk: the claim is therefore tried again first.
//
// System calls are made only while the thread is counted in HdrInSlow and has seen the gate open since: a seccomp hook closes
// the gates and waits for those that are counted, see seccomp.go. Where that is seen to be closed after a nap, signals are
// as they were, and nothing but the registers is left to put back.
//
// Registers inside: RBX word, RBP entry SP, R8 slot, R9 ring, R13 how often it has waited.
type slowPath struct {
	*coder
	payload                                             bool // of events with a payload, see payload.go
	entryDrop, out, leave, block, claim, write, unblock amd64.Label
	again, acquire, install, exitSpare, register        amd64.Label
}

// emitSlow appends the slow path and returns its address.
func (c *coder) emitSlow() uint64 { return c.emitSlowPath(false) }

func (c *coder) emitSlowPath(payload bool) uint64 {
	c.Align(16)
	maskAt := c.PC()
	c.routines.mask = maskAt
	c.Raw(0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF) // all signals
	napAt := c.PC()
	c.routines.nap = napAt
	c.Raw(0, 0, 0, 0, 0, 0, 0, 0)          // 0 s
	c.Raw(0xA0, 0x86, 0x01, 0, 0, 0, 0, 0) // 100,000 ns
	c.Align(64)
	addr := c.PC()
	s := &slowPath{coder: c, payload: payload}
	for _, l := range []*amd64.Label{&s.entryDrop, &s.out, &s.leave, &s.again, &s.block, &s.claim, &s.write, &s.unblock, &s.acquire, &s.install, &s.exitSpare, &s.register} {
		*l = c.NewLabel()
	}
	s.prologue()
	s.quickDrop()
	s.enter()
	s.blockSignals(maskAt)
	if payload {
		s.gatherValues()
	}
	s.tryClaim()
	s.registerThread()
	s.acquireChunk(napAt)
	s.installChunk()
	s.spareExit(napAt)
	s.unblockSignals()
	s.dropEntry()
	s.epilogue()
	return addr
}

// saved are the registers kept by prologue, in the order they are pushed.
var saved = []amd64.Reg{amd64.RBX, amd64.RBP, amd64.RSI, amd64.RDI, amd64.R8, amd64.R9, amd64.R10, amd64.R11, amd64.R12, amd64.R13}

func (s *slowPath) slot(off int32) amd64.Mem { return amd64.At(amd64.R8, off) }
func (s *slowPath) hdr(off int32) amd64.Mem  { return amd64.At(amd64.R9, off) }

func (s *slowPath) prologue() {
	s.beginKeeping(saved)
	s.Mov32(amd64.RBX, amd64.RCX)
	s.Mov(amd64.RBP, amd64.RDX)
	s.Load64(amd64.RDX, amd64.AtAddr(s.cfg.Gate))
	s.Test(amd64.RDX, amd64.RDX)
	s.Jcc(amd64.CondLE, s.out)
	s.Test(amd64.RAX, amd64.RAX) // no thread has ID 0: the descriptor isn't set up
	s.Jcc(amd64.CondE, s.out)
	s.Lea(amd64.R8, amd64.AtIndex(amd64.RDX, amd64.RAX, 8, 0))
	s.Lea(amd64.R9, amd64.At(amd64.RDX, -ring.SlotsOff))
	s.MovImm32(amd64.R13, 0)
}

// sleep appends a sleep for the time that is at napAt. RAX, RCX, RDI, RSI, R11 and flags are clobbered.
func (c *coder) sleep(napAt uint64) {
	c.MovImm32(amd64.RAX, sysNanosleep)
	c.Lea(amd64.RDI, amd64.AtAddr(napAt))
	c.MovImm32(amd64.RSI, 0)
	c.Syscall()
}

func (s *slowPath) epilogue() {
	s.Place(s.leave)
	s.count(-1)
	s.Place(s.out)
	s.returnWith(saved)
	s.endRoutine()
}

// quickDrop leaves early, with no system call, while the pool is empty, the thread's own chunk isn't drained and it drops.
func (s *slowPath) quickDrop() {
	s.CmpMem32Imm8(s.slot(ring.SlotMode), 0)
	s.Jcc(amd64.CondE, s.block)
	s.CmpMem32Imm8(s.hdr(ring.HdrPool), 0)
	if s.cfg.Overwrite {
		s.lookAgain(s.block)
	} else {
		s.Jcc(amd64.CondNE, s.block)
		s.CmpMem32Imm8(s.hdr(ring.HdrSmallPool), 0)
		s.Jcc(amd64.CondNE, s.block)
	}
	s.TestMem32Imm(s.slot(ring.SlotClaim+4), ring.ClaimOverflow)
	s.Jcc(amd64.CondNE, s.block)
	s.drained(s.block)
	s.TestALImm(amd64.RBX, 1)
	s.Jcc(amd64.CondE, s.entryDrop)
	// An exit at or below the mark belongs to an entry that was dropped.
	s.CmpMem(amd64.RBP, s.slot(ring.SlotMark))
	s.Jcc(amd64.CondBE, s.out)
}

// enter counts the thread, and goes on only with the gate open. The locked addition comes before the look at the gate
// as the hook's closing comes before its look at the count: one of the two sees the other.
func (s *slowPath) enter() {
	s.Place(s.block)
	s.count(1)
	s.CmpMem64Imm8(amd64.AtAddr(s.cfg.Gate), 0)
	s.Jcc(amd64.CondLE, s.leave)
}

// count adds to HdrInSlow and the thread's own part of it. RCX is clobbered.
func (s *slowPath) count(n int64) {
	s.MovImm64(amd64.RCX, uint64(n))
	s.LockXadd64(s.hdr(ring.HdrInSlow), amd64.RCX)
	s.MovImm64(amd64.RCX, uint64(n))
	s.Xadd64(s.slot(ring.SlotInSlow), amd64.RCX)
}

// maskSize is the place on the stack for the old mask.
const maskSize = 16

// blockSignals also makes space on the stack for the old mask.
func (s *slowPath) blockSignals(maskAt uint64) {
	s.Place(s.again)
	if !s.lang.handlersWrite {
		return // handlers don't come here, see goevent.go
	}
	s.drop(maskSize)
	s.MovImm32(amd64.RAX, sysRtSigprocmask)
	s.MovImm32(amd64.RDI, sigBlock)
	s.Lea(amd64.RSI, amd64.AtAddr(maskAt))
	s.Mov(amd64.RDX, amd64.RSP)
	s.MovImm32(amd64.R10, 8)
	s.Syscall()
}

// tryClaim claims 16 bytes and writes the event; without space it goes on to acquire.
func (s *slowPath) tryClaim() {
	s.Place(s.claim)
	if s.payload {
		s.claimWithPayload()
	} else {
		s.take(s.slot(ring.SlotClaim), s.register)
	}
	s.Place(s.write)
	if s.payload {
		s.writePayload()
	}
	s.Store32(amd64.At(amd64.RCX, ring.EventSP), amd64.RBP)
	switch s.cfg.Clock {
	case stub.ClockFull:
		s.time(true)
	case stub.ClockExit:
		entry := s.NewLabel()
		s.TestALImm(amd64.RBX, 1)
		s.Jcc(amd64.CondE, entry)
		s.time(true)
		s.Place(entry)
	}
	if s.payload && s.cfg.Clock != stub.ClockNone {
		s.timeBefore()
	}
	s.Store32(amd64.At(amd64.RCX, ring.EventWord), amd64.RBX)
	s.Jmp(s.unblock)
}

// registerThread puts a thread that is seen for the first time into the registry. An exit does not count: its call was
// entered before recording began. The name is asked for here since a short-lived thread may be gone before the
// recorder looks.
func (s *slowPath) registerThread() {
	s.Place(s.register)
	s.Store64Imm(s.slot(ring.SlotClaim), 0)
	s.CmpMem32Imm8(s.slot(ring.SlotRegistered), 0)
	s.Jcc(amd64.CondNE, s.acquire)
	if s.lang.callsStay { // a goroutine's exit may be of a call on another thread
		s.TestALImm(amd64.RBX, 1)
		s.Jcc(amd64.CondNE, s.unblock)
	}
	s.Store32Imm(s.slot(ring.SlotRegistered), 1)
	s.MovImm32(amd64.RCX, 1)
	s.LockXadd64(s.hdr(ring.HdrRegistered), amd64.RCX)
	s.And32Imm(amd64.RCX, ring.RegistrySize-1)
	s.Shl32Imm(amd64.RCX, 5)
	s.Lea(amd64.R12, amd64.AtIndex(amd64.R9, amd64.RCX, 1, ring.RegistryOff))
	if s.lang.threadsNamed {
		s.MovImm32(amd64.RAX, sysPrctl)
		s.MovImm32(amd64.RDI, prGetName)
		s.Lea(amd64.RSI, amd64.At(amd64.R12, ring.RegName))
		s.Syscall()
	}
	if s.cfg.Follow {
		s.MovImm32(amd64.RAX, sysGetpid)
		s.Syscall()
		s.Store32(amd64.At(amd64.R12, ring.RegPID), amd64.RAX)
	}
	s.Mov(amd64.RAX, amd64.R8)
	s.Sub(amd64.RAX, amd64.R9)
	s.Lea(amd64.RAX, amd64.At(amd64.RAX, -ring.SlotsOff))
	s.ShrImm(amd64.RAX, 6) // the slot's index is the thread ID
	s.Store32(amd64.At(amd64.R12, ring.RegTID), amd64.RAX)
}

// pop takes a chunk off the stack whose head is at off: EDX becomes its index+1, or none is taken. R9 is the ring. The
// tag in the head's upper half counts pops, so a head that was popped and pushed back in between doesn't pass (ABA).
func (s *slowPath) pop(off int32, none amd64.Label) {
	retry := s.NewLabel()
	s.Place(retry)
	s.Load64(amd64.RAX, s.hdr(off))
	s.Mov32(amd64.RDX, amd64.RAX)
	s.Test(amd64.RDX, amd64.RDX)
	s.Jcc(amd64.CondE, none)
	s.Load32(amd64.RCX, amd64.AtIndex(amd64.R9, amd64.RDX, 4, ring.NextOff-4))
	s.Mov(amd64.RSI, amd64.RAX)
	s.ShrImm(amd64.RSI, 32)
	s.Lea(amd64.RSI, amd64.At(amd64.RSI, 1))
	s.ShlImm(amd64.RSI, 32)
	s.Or(amd64.RSI, amd64.RCX)
	s.LockCmpxchg64(s.hdr(off), amd64.RSI)
	s.Jcc(amd64.CondNE, retry)
}

// placeOf makes RAX, a chunk's index+1, its offset in the ring, and RSI how many events it holds. RCX is clobbered.
func (s *slowPath) placeOf() {
	large, done := s.NewLabel(), s.NewLabel()
	s.Load32(amd64.RCX, s.hdr(ring.HdrSmall))
	s.Cmp(amd64.RAX, amd64.RCX)
	s.Jcc(amd64.CondA, large)
	s.ShlImm(amd64.RAX, ring.SmallShift)
	s.Lea(amd64.RAX, amd64.At(amd64.RAX, ring.ChunksOff-ring.SmallSize))
	s.MovImm32(amd64.RSI, ring.SmallEvents)
	s.Jmp(done)
	s.Place(large)
	s.Sub(amd64.RAX, amd64.RCX)
	s.ShlImm(amd64.RAX, ring.ChunkShift)
	s.ShlImm(amd64.RCX, ring.SmallShift)
	s.Lea(amd64.RAX, amd64.AtIndex(amd64.RAX, amd64.RCX, 1, ring.ChunksOff-ring.ChunkSize))
	s.MovImm32(amd64.RSI, ring.ChunkEvents)
	s.Place(done)
}

// chunk is a field of the chunk whose offset is in r.
func (s *slowPath) chunk(r amd64.Reg, field int32) amd64.Mem {
	return amd64.AtIndex(amd64.R9, r, 1, field)
}

// emptyWord makes RSI, how many events a chunk holds, the claim word of the chunk with nothing in it, whose first event is at RDI. RCX is
// clobbered. See ring.ClaimEmpty.
func (s *slowPath) emptyWord() {
	s.MovImm32(amd64.RCX, 0)
	s.Sub(amd64.RCX, amd64.RSI)
	s.ShlImm(amd64.RCX, ring.ClaimShift)
	s.Or(amd64.RCX, amd64.RDI)
	s.Mov(amd64.RSI, amd64.RCX)
}

// drained jumps to yes when the recorder has taken all that the thread has written. RAX and RSI are then as placeOf leaves them for its
// chunk.
func (s *slowPath) drained(yes amd64.Label) {
	no := s.NewLabel()
	s.Load32(amd64.RAX, s.slot(ring.SlotChunk))
	s.Test(amd64.RAX, amd64.RAX)
	s.Jcc(amd64.CondE, no)
	s.placeOf()
	s.Load32(amd64.RCX, s.chunk(amd64.RAX, ring.ChunkDrained))
	// A full chunk, or spare chunk, which is 0 without any: see Claim.
	s.Load64(amd64.RDX, s.slot(ring.SlotSpare))
	s.SarImm(amd64.RDX, ring.ClaimShift)
	s.Add(amd64.RDX, amd64.RSI)
	s.Cmp(amd64.RCX, amd64.RDX)
	s.Jcc(amd64.CondE, yes)
	s.Place(no)
}

// acquireChunk gets space: a chunk of the pool for anything, the thread's spare chunk or a chunk of the reserve for the
// exit of an accepted call, else nothing. When all chunks are other threads', the thread's own will do again once it is
// drained; otherwise threads that hold all of them would wait for each other.
func (s *slowPath) acquireChunk(napAt uint64) {
	none, noSpare, drop := s.NewLabel(), s.NewLabel(), s.NewLabel()
	goOn, empty, again := s.NewLabel(), s.NewLabel(), s.NewLabel()
	s.Place(s.acquire)
	s.CmpMem64Imm8(s.slot(ring.SlotSpare), 0)
	s.Jcc(amd64.CondE, noSpare)
	// The thread was down to exits. With chunks in the pool again what is left of its spare is its chunk.
	s.CmpMem32Imm8(s.hdr(ring.HdrPool), 0)
	s.Jcc(amd64.CondNE, goOn)
	s.CmpMem32Imm8(s.hdr(ring.HdrSmallPool), 0)
	s.Jcc(amd64.CondNE, goOn)
	s.drained(goOn)
	s.Jmp(none)
	s.Place(goOn)
	s.Load64(amd64.RAX, s.slot(ring.SlotSpare))
	s.Store64Imm(s.slot(ring.SlotSpare), 0)
	s.Store64Imm(s.slot(ring.SlotMark), 0)
	s.Store32Imm(s.slot(ring.SlotMode), 0)
	s.Store64(s.slot(ring.SlotClaim), amd64.RAX)
	s.Jmp(s.claim)

	s.Place(noSpare)
	if s.cfg.Overwrite {
		s.takeOldest(empty)
	} else {
		s.popSuitable(empty)
	}
	s.Store32Imm(s.slot(ring.SlotMode), 0)
	s.Store64Imm(s.slot(ring.SlotMark), 0)
	s.Lea(amd64.R12, s.slot(ring.SlotClaim))
	s.Jmp(s.install)

	s.Place(again)
	s.Store32Imm(s.chunk(amd64.RAX, ring.ChunkDrained), 0)
	s.Lea(amd64.RDI, s.chunk(amd64.RAX, ring.ChunkHeader))
	s.emptyWord()
	s.Store32Imm(s.slot(ring.SlotMode), 0)
	s.Store64Imm(s.slot(ring.SlotMark), 0)
	s.Store64(s.slot(ring.SlotClaim), amd64.RSI)
	s.Jmp(s.claim)

	s.Place(empty)
	s.drained(again)
	s.Place(none)
	if s.cfg.Lossless {
		s.wait(napAt, drop)
	}
	s.Place(drop)
	s.TestALImm(amd64.RBX, 1)
	s.Jcc(amd64.CondNE, s.exitSpare)
	s.startDropping()
	// Signals go back to what they were before the drop is counted, in code shared with the quick way.
	s.restoreMask()
	s.count(-1)
	s.Jmp(s.entryDrop)
	s.blocked()
}

// popSuitable takes a chunk for anything: a small one if the thread hasn't had many yet, else one of the others, and whichever there is
// if there is none of these. EDX becomes its index+1.
func (s *slowPath) popSuitable(none amd64.Label) {
	small, large, got := s.NewLabel(), s.NewLabel(), s.NewLabel()
	s.Load32(amd64.RAX, s.slot(ring.SlotChunk))
	s.Test(amd64.RAX, amd64.RAX)
	s.Jcc(amd64.CondE, small)
	s.placeOf()
	s.CmpMem32Imm8(s.chunk(amd64.RAX, ring.ChunkSeq), ring.SmallFirst)
	s.Jcc(amd64.CondB, small)
	s.pop(ring.HdrPool, small)
	s.Jmp(got)
	s.Place(small)
	s.pop(ring.HdrSmallPool, large)
	s.Jmp(got)
	s.Place(large)
	s.pop(ring.HdrPool, none)
	s.Place(got)
}

// startDropping begins a time of dropping, with no entry dropped yet; no signal may come between its instructions.
func (s *slowPath) startDropping() {
	already := s.NewLabel()
	s.CmpMem32Imm8(s.slot(ring.SlotMode), 0)
	s.Jcc(amd64.CondNE, already)
	s.Store64Imm(s.slot(ring.SlotMark), 0)
	s.Store32Imm(s.slot(ring.SlotMode), modeDropping)
	s.Place(already)
}

// How often a thread waits, 100 to 160 µs each time: some 3 s if it has no chunk, since then there may never be one for
// it, and 15 s if it only has to wait until the recorder has drained its own.
const (
	maxNapsWithout = 20_000
	maxNaps        = 100_000
)

// wait sleeps 100 µs with the old signal mask and starts again, unless the recorder has been silent for too long.
func (s *slowPath) wait(napAt uint64, dead amd64.Label) {
	has := s.NewLabel()
	s.MovImm32(amd64.RAX, maxNaps)
	s.CmpMem32Imm8(s.slot(ring.SlotChunk), 0)
	s.Jcc(amd64.CondNE, has)
	s.MovImm32(amd64.RAX, maxNapsWithout)
	s.Place(has)
	s.Lea(amd64.R13, amd64.At(amd64.R13, 1))
	s.Cmp(amd64.R13, amd64.RAX)
	s.Jcc(amd64.CondA, dead)
	s.heartbeat(ring.HdrWaitLimit)
	s.Jcc(amd64.CondA, dead)
	s.restoreMask()
	s.sleep(napAt)
	// Recording may have ended meanwhile, or system calls be forbidden.
	s.CmpMem64Imm8(amd64.AtAddr(s.cfg.Gate), 0)
	s.Jcc(amd64.CondLE, s.leave)
	s.Jmp(s.again)
	s.blocked()
}

// heartbeat compares the recorder's silence with a limit: "above" means dead. RAX and RDX are clobbered. A counter
// read on another core may lag by a few ticks: the difference is then negative, and compared as a signed number.
func (s *slowPath) heartbeat(limit int32) {
	s.Rdtsc()
	s.ShlImm(amd64.RDX, 32)
	s.Or(amd64.RAX, amd64.RDX)
	s.Load64(amd64.RDX, s.hdr(ring.HdrHeartbeat))
	ok := s.NewLabel()
	s.Sub(amd64.RAX, amd64.RDX)
	s.Jcc(amd64.CondNS, ok)
	s.MovImm32(amd64.RAX, 0)
	s.Place(ok)
	s.CmpMem(amd64.RAX, s.hdr(limit))
}

// installChunk makes chunk EDX (index+1) the thread's own. R12 is where its claim word goes, SlotClaim or SlotSpare.
func (s *slowPath) installChunk() {
	s.Place(s.install)
	if s.cfg.Overwrite {
		s.adopt()
	}
	first, linked := s.NewLabel(), s.NewLabel()
	s.Mov32(amd64.RAX, amd64.RDX)
	s.placeOf()
	s.Mov(amd64.R10, amd64.RAX)
	s.Lea(amd64.RDI, s.chunk(amd64.RAX, ring.ChunkHeader))
	// What is new to the process is read before it is written: the kernel maps 16 pages at a fault then, as many as a chunk has, and not
	// one. The recorder has made the pages, see mapChunks.
	s.Load32(amd64.RCX, s.chunk(amd64.RAX, 0))
	s.Mov(amd64.RCX, amd64.RSI)
	s.ShlImm(amd64.RCX, 4) // times ring.EventSize
	s.Load32(amd64.RCX, amd64.AtIndex(amd64.RDI, amd64.RCX, 1, -4))
	s.emptyWord()
	s.Load32(amd64.RAX, s.slot(ring.SlotChunk))
	s.Store32(s.slot(ring.SlotChunk), amd64.RDX)
	s.Store64(amd64.At(amd64.R12, 0), amd64.RSI)
	s.Test(amd64.RAX, amd64.RAX)
	s.Jcc(amd64.CondE, first)
	s.placeOf()
	if !s.cfg.Overwrite { // else adopt has numbered it
		s.Load32(amd64.RCX, s.chunk(amd64.RAX, ring.ChunkSeq))
		s.Lea(amd64.RCX, amd64.At(amd64.RCX, 1))
		s.Store32(s.chunk(amd64.R10, ring.ChunkSeq), amd64.RCX)
	}
	s.Store32(s.chunk(amd64.RAX, ring.ChunkNext), amd64.RDX)
	s.Jmp(linked)
	s.Place(first)
	if !s.cfg.Overwrite {
		s.Store32Imm(s.chunk(amd64.R10, ring.ChunkSeq), 1)
		s.Store32(s.slot(ring.SlotFirst), amd64.RDX)
	}
	s.Place(linked)
	s.TestALImm(amd64.RBX, 1)
	s.Jcc(amd64.CondE, s.claim)
	s.CmpMem64Imm8(s.slot(ring.SlotSpare), 0)
	s.Jcc(amd64.CondE, s.claim)
	s.Jmp(s.exitSpare)
}

// spareExit writes the exit of an accepted call into the thread's spare chunk, which it takes from the reserve.
func (s *slowPath) spareExit(napAt uint64) {
	take, lost, dead, sure := s.NewLabel(), s.NewLabel(), s.NewLabel(), s.NewLabel()
	s.Place(s.exitSpare)
	s.CmpMem32Imm8(s.slot(ring.SlotMode), 0)
	s.Jcc(amd64.CondE, sure)
	s.CmpMem(amd64.RBP, s.slot(ring.SlotMark))
	s.Jcc(amd64.CondBE, s.unblock)
	s.Place(sure)
	s.startDropping()
	s.take(s.slot(ring.SlotSpare), take)
	if s.payload {
		s.withoutPayload()
	}
	s.Jmp(s.write)
	s.Place(take)
	s.Store64Imm(s.slot(ring.SlotSpare), 0)
	s.pop(ring.HdrReserve, lost)
	s.Lea(amd64.R12, s.slot(ring.SlotSpare))
	s.Jmp(s.install)
	s.Place(lost)
	s.wait(napAt, dead) // an accepted entry gets its exit as long as there is a recorder to make space
	s.Place(dead)
	s.IncMem(s.slot(ring.SlotLostExits))
	s.Place(s.unblock)
}

// blocked notes, behind code that has restored the mask and gone elsewhere, that it isn't restored in what follows.
func (s *slowPath) blocked() {
	if s.unwind != nil {
		s.below(s.unwind.depth + maskSize)
	}
}

// restoreMask undoes blockSignals.
func (s *slowPath) restoreMask() {
	if !s.lang.handlersWrite {
		return
	}
	s.MovImm32(amd64.RAX, sysRtSigprocmask)
	s.MovImm32(amd64.RDI, sigSetmask)
	s.Mov(amd64.RSI, amd64.RSP)
	s.MovImm32(amd64.RDX, 0)
	s.MovImm32(amd64.R10, 8)
	s.Syscall()
	s.drop(-maskSize)
}

func (s *slowPath) unblockSignals() {
	s.restoreMask()
	s.Jmp(s.leave)
}

// dropEntry counts an entry that is dropped and closes the gate when the recorder is dead. Signals are not blocked. The
// mark may only rise; a handler that comes between its reading and writing runs deeper in the stack, so its own mark is
// lower. If the handler ended the dropping, the mark means nothing until startDropping sets it back.
func (s *slowPath) dropEntry() {
	marked := s.NewLabel()
	s.Place(s.entryDrop)
	s.IncMem(s.slot(ring.SlotDropped))
	s.CmpMem(amd64.RBP, s.slot(ring.SlotMark))
	s.Jcc(amd64.CondBE, marked)
	s.Store64(s.slot(ring.SlotMark), amd64.RBP)
	s.Place(marked)
	s.heartbeat(ring.HdrCloseLimit)
	s.Jcc(amd64.CondBE, s.out)
	s.Store8Imm(amd64.AtAddr(s.cfg.Gate+stub.GateTop), stub.GateShut)
}
