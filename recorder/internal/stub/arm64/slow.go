package arm64

import (
	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// slowPath is the code that runs when a thread's chunk is full, or when it has none, or while it drops: once in some 4,000 events. It is
// called with w16 the event's word and x17 the stack pointer at the function's entry, and keeps all but these.
//
// What it does, and in which order, is what the slow path of x86-64 does; what is said there of signals, of counting and of the gate
// holds here. What is different: the stores that publish are releases and the loads that rely on them acquires, there is a barrier
// between the count and the look at the gate (see docs/design/ring-protocol.md), and system calls forget what SVE has in its registers
// (see vector.go).
//
// Registers inside: x7 the frame, x9 word, x10 entry SP, x11 slot, x12 ring, x13 how often it has waited, x14 where a chunk's claim word
// goes. The kernel keeps all but x0.
type slowPath struct {
	*coder
	payload                                             bool // of events with a payload, see payload.go
	entryDrop, out, leave, block, claim, write, unblock arm64.Label
	again, acquire, install, exitSpare, register        arm64.Label
}

const (
	rFrame = x7
	rWord  = x9
	rSP    = x10
	rSlot  = x11
	rRing  = x12
	rNaps  = x13
	rTo    = x14
)

// The frame: x0 to x15, link register and flags, the old signal mask, and what was in streaming mode.
const (
	frameLR     = 128
	frameFlags  = 136
	frameMask   = 144
	frameSVCR   = 152
	frameFPSR   = 160
	frameSize   = 176
	frameKept   = 16 // registers from x0 on
	signalsSize = 8  // of a signal mask, in bytes
)

// emitSlow appends the slow path and returns its address.
func (c *coder) emitSlow() uint64 { return c.emitSlowPath(false) }

func (c *coder) emitSlowPath(payload bool) uint64 {
	c.Align(8)
	c.routines.mask = c.PC()
	c.Data64(^uint64(0)) // all signals
	c.routines.nap = c.PC()
	c.Data64(0)
	c.Data64(100_000) // ns
	c.Align(64)
	addr := c.PC()
	s := &slowPath{coder: c, payload: payload}
	for _, l := range []*arm64.Label{&s.entryDrop, &s.out, &s.leave, &s.again, &s.block, &s.claim, &s.write, &s.unblock, &s.acquire, &s.install, &s.exitSpare, &s.register} {
		*l = c.NewLabel()
	}
	s.prologue()
	s.quickDrop()
	s.enter()
	s.blockSignals()
	if payload {
		s.gatherValues()
	}
	s.tryClaim()
	s.registerThread()
	s.acquireChunk()
	s.installChunk()
	s.spareExit()
	s.unblockSignals()
	s.dropEntry()
	s.epilogue()
	c.flush()
	return addr
}

func (s *slowPath) slot(off int32) arm64.Mem { return arm64.At(rSlot, off) }
func (s *slowPath) hdr(off int32) arm64.Mem  { return arm64.At(rRing, off) }

// beginFrame begins a routine that keeps all but x16 and x17, endFrame ends it.
func (s *slowPath) beginFrame() {
	s.beginRoutine()
	s.StorePair(x0, x1, arm64.Pre(sp, -frameSize))
	s.below(frameSize)
	for r := x2; r < frameKept; r += 2 {
		s.StorePair(r, r+1, arm64.At(sp, 8*int32(r)))
	}
	s.Mrs(x0, arm64.NZCV)
	s.StorePair(lr, x0, arm64.At(sp, frameLR))
	s.MovSP(rFrame, sp)
	s.framed()
}

func (s *slowPath) prologue() {
	s.beginFrame()
	s.MovW(rWord, x16)
	s.Mov(rSP, x17)
	s.loadAt(x0, s.cfg.Gate)
	s.Tbz(x0, gateOpen, s.out)
	s.threadID(x1)
	s.CbzW(x1, s.out) // no thread has ID 0: the descriptor isn't set up
	s.AndImm(x0, x0, GateTag-1)
	s.AddLSL(rSlot, x0, x1, slotShift)
	s.SubImm(rRing, x0, ring.SlotsOff)
	s.Movz(rNaps, 0, 0)
}

func (s *slowPath) epilogue() {
	s.Place(s.leave)
	s.count(-1)
	s.restoreVectors()
	s.Place(s.out)
	s.endFrame()
}

func (s *slowPath) endFrame() {
	s.LoadPair(lr, x0, arm64.At(sp, frameLR))
	s.Msr(arm64.NZCV, x0)
	for r := x2; r < frameKept; r += 2 {
		s.LoadPair(r, r+1, arm64.At(sp, 8*int32(r)))
	}
	s.unframed()
	s.LoadPair(x0, x1, arm64.Post(sp, frameSize))
	s.below(0)
	s.Ret(lr)
	s.endRoutine()
}

// sleep appends a sleep. x0, x1 and x8 are clobbered.
func (c *coder) sleep() {
	c.AddressOf(x0, c.routines.nap)
	c.Movz(x1, 0, 0)
	c.call(sysNanosleep)
}

// call appends a system call. x0 and x8 are clobbered.
func (c *coder) call(number uint16) {
	if c.insteadOf != nil && c.insteadOf(c, number) {
		return
	}
	c.MovzW(x8, number, 0)
	c.Svc()
	if c.behindCall != nil {
		c.behindCall(c)
	}
}

// increment appends the counting up of a number of the slot, in one piece for signal handlers. x0 to x3 and x15 are clobbered.
func (s *slowPath) increment(off int32) {
	s.AddImm(x15, rSlot, int64(off))
	s.Movz(x0, 1, 0)
	s.fetchAdd(8, x0, x1, x15, x2, x3, arm64.Order{})
}

// ifZero and unlessZero append a jump on what is in memory. x15 is clobbered.
func (s *slowPath) ifZero(size int, m arm64.Mem, l arm64.Label) {
	s.Load(size, x15, m)
	s.Cbz(x15, l)
}

func (s *slowPath) unlessZero(size int, m arm64.Mem, l arm64.Label) {
	s.Load(size, x15, m)
	s.Cbnz(x15, l)
}

// belowMark goes to l when the event's stack pointer isn't above the mark.
func (s *slowPath) belowMark(l arm64.Label) {
	s.Load(8, x15, s.slot(ring.SlotMark))
	s.Cmp(rSP, x15)
	s.BCond(arm64.CondLS, l)
}

// quickDrop leaves early, with no system call, while the pool is empty, the thread's own chunk isn't drained and it drops.
func (s *slowPath) quickDrop() {
	s.ifZero(4, s.slot(ring.SlotMode), s.block)
	if s.cfg.Overwrite {
		s.lookAgain(s.block)
	} else {
		s.unlessZero(4, s.hdr(ring.HdrPool), s.block)
		s.unlessZero(4, s.hdr(ring.HdrSmallPool), s.block)
	}
	s.Load(8, x15, s.slot(ring.SlotClaim))
	s.Tbnz(x15, overflowBit, s.block)
	s.drained(s.block)
	s.Tbz(rWord, 0, s.entryDrop)
	// An exit at or below the mark belongs to an entry that was dropped.
	s.belowMark(s.out)
}

// overflowBit is that of ring.ClaimOverflow in the whole claim word.
const overflowBit = 62

var _ [ring.ClaimOverflow - 1<<(overflowBit-32)]struct{}

// enter counts the thread, and goes on only with the gate open. The barrier makes the count visible before the gate is looked at, as the
// hook's closing is before its look at the count: one of the two sees the other.
func (s *slowPath) enter() {
	s.Place(s.block)
	s.saveVectors()
	s.count(1)
	s.Dmb()
	s.unlessOpen(s.leave)
}

// unlessOpen goes to l when the gate is closed. x15 is clobbered.
func (s *slowPath) unlessOpen(l arm64.Label) {
	s.loadAt(x15, s.cfg.Gate)
	s.Tbz(x15, gateOpen, l)
}

// count adds to HdrInSlow and the thread's own part of it. x0 to x3 and x15 are clobbered.
func (s *slowPath) count(n int64) {
	s.MovImm(x0, uint64(n))
	s.AddImm(x15, rRing, ring.HdrInSlow)
	s.fetchAdd(8, x0, x1, x15, x2, x3, bothWays)
	s.AddImm(x15, rSlot, ring.SlotInSlow)
	s.fetchAdd(8, x0, x1, x15, x2, x3, arm64.Order{})
}

func (s *slowPath) blockSignals() {
	s.Place(s.again)
	s.Movz(x0, sigBlock, 0)
	s.AddressOf(x1, s.routines.mask)
	s.AddImm(x2, rFrame, frameMask)
	s.Movz(x3, signalsSize, 0)
	s.call(sysRtSigprocmask)
}

// restoreMask undoes blockSignals.
func (s *slowPath) restoreMask() {
	s.Movz(x0, sigSetmask, 0)
	s.AddImm(x1, rFrame, frameMask)
	s.Movz(x2, 0, 0)
	s.Movz(x3, signalsSize, 0)
	s.call(sysRtSigprocmask)
}

func (s *slowPath) unblockSignals() {
	s.restoreMask()
	s.B(s.leave)
}

// claimAt takes an event out of a claim word of the slot: x17 becomes its address. It goes to none when there is no space.
func (s *slowPath) claimAt(off int32, none arm64.Label) {
	s.AddImm(x15, rSlot, int64(off))
	s.MovImm(x0, ring.Claim)
	s.fetchAdd(8, x0, x17, x15, x2, x3, arm64.Order{})
	s.Tbz(x17, 63, none)
	s.AndImm(x17, x17, claimLow)
}

// tryClaim claims 16 bytes and writes the event; without space it goes on to acquire.
func (s *slowPath) tryClaim() {
	s.Place(s.claim)
	if s.payload {
		s.claimWithPayload()
	} else {
		s.claimAt(ring.SlotClaim, s.register)
	}
	s.Place(s.write)
	if s.payload {
		s.writePayload()
	}
	switch s.cfg.Clock {
	case stub.ClockFull:
		s.stamp(x17, ring.EventTime)
	case stub.ClockExit:
		entry := s.NewLabel()
		s.Tbz(rWord, 0, entry)
		s.stamp(x17, ring.EventTime)
		s.Place(entry)
	}
	if s.payload && s.cfg.Clock != stub.ClockNone {
		s.timeBefore()
	}
	s.Store(4, rSP, arm64.At(x17, ring.EventSP))
	s.storeRelease(4, rWord, x17, ring.EventWord)
	s.B(s.unblock)
}

// storeRelease appends a store that publishes all before it. x15 is clobbered.
func (s *slowPath) storeRelease(size int, r, base isa.Reg, off int32) {
	s.AddImm(x15, base, int64(off))
	s.StoreRelease(size, r, x15)
}

// stamp writes the counter. x0 is clobbered.
func (s *slowPath) stamp(base isa.Reg, off int32) {
	s.Mrs(x0, arm64.CNTVCTEL0)
	s.Store(8, x0, arm64.At(base, off))
}

// registerThread puts a thread that is seen for the first time into the registry. An exit does not count: its call was entered before
// recording began.
func (s *slowPath) registerThread() {
	s.Place(s.register)
	s.Store(8, zr, s.slot(ring.SlotClaim))
	s.unlessZero(4, s.slot(ring.SlotRegistered), s.acquire)
	s.Movz(x0, 1, 0)
	s.Store(4, x0, s.slot(ring.SlotRegistered))
	s.AddImm(x15, rRing, ring.HdrRegistered)
	s.fetchAdd(8, x0, x4, x15, x2, x3, bothWays)
	s.AndImm(x4, x4, ring.RegistrySize-1)
	s.AddImm(x5, rRing, ring.RegistryOff)
	s.AddLSL(x5, x5, x4, 5)
	s.Movz(x0, prGetName, 0)
	s.AddImm(x1, x5, ring.RegName)
	s.call(sysPrctl)
	if s.cfg.Follow {
		s.call(sysGetpid)
		s.Store(4, x0, arm64.At(x5, ring.RegPID))
	}
	s.tidOfSlot(x0)
	s.storeRelease(4, x0, x5, ring.RegTID)
}

// tidOfSlot makes r the thread ID, which is the slot's index.
func (s *slowPath) tidOfSlot(r isa.Reg) {
	s.Sub(r, rSlot, rRing)
	s.SubImm(r, r, ring.SlotsOff)
	s.LsrImm(r, r, slotShift)
}

// acquireChunk gets space: a chunk of the pool for anything, the thread's spare chunk or a chunk of the reserve for the exit of an
// accepted call, else nothing.
func (s *slowPath) acquireChunk() {
	none, noSpare, drop := s.NewLabel(), s.NewLabel(), s.NewLabel()
	goOn, empty, again := s.NewLabel(), s.NewLabel(), s.NewLabel()
	s.Place(s.acquire)
	s.ifZero(8, s.slot(ring.SlotSpare), noSpare)
	// The thread was down to exits. With chunks in the pool again what is left of its spare is its chunk.
	s.unlessZero(4, s.hdr(ring.HdrPool), goOn)
	s.unlessZero(4, s.hdr(ring.HdrSmallPool), goOn)
	s.drained(goOn)
	s.B(none)
	s.Place(goOn)
	s.Load(8, x0, s.slot(ring.SlotSpare))
	s.Store(8, zr, s.slot(ring.SlotSpare))
	s.stopDropping()
	s.Store(8, x0, s.slot(ring.SlotClaim))
	s.B(s.claim)

	s.Place(noSpare)
	if s.cfg.Overwrite {
		s.takeOldest(empty)
	} else {
		s.popSuitable(empty)
	}
	s.stopDropping()
	s.AddImm(rTo, rSlot, ring.SlotClaim)
	s.B(s.install)

	s.Place(again) // x5 and x3 are as drained leaves them
	s.storeRelease(4, zr, x5, ring.ChunkDrained)
	s.AddImm(x4, x5, ring.ChunkHeader)
	s.emptyWord()
	s.stopDropping()
	s.Store(8, x3, s.slot(ring.SlotClaim))
	s.B(s.claim)

	s.Place(empty)
	s.drained(again)
	s.Place(none)
	if s.cfg.Lossless {
		s.wait(drop)
	}
	s.Place(drop)
	s.Tbnz(rWord, 0, s.exitSpare)
	s.startDropping()
	// Signals go back to what they were before the drop is counted, in code shared with the quick way.
	s.restoreMask()
	s.count(-1)
	s.restoreVectors()
	s.B(s.entryDrop)
}

func (s *slowPath) stopDropping() {
	s.Store(4, zr, s.slot(ring.SlotMode))
	s.Store(8, zr, s.slot(ring.SlotMark))
}

// popSuitable takes a chunk for anything: a small one if the thread hasn't had many yet, else one of the others, and whichever there is if
// there is none of these. x2 becomes its index+1.
func (s *slowPath) popSuitable(none arm64.Label) {
	small, large, got := s.NewLabel(), s.NewLabel(), s.NewLabel()
	s.Load(4, x0, s.slot(ring.SlotChunk))
	s.CbzW(x0, small)
	s.placeOf()
	s.chunk(x5, x0)
	s.Load(4, x15, arm64.At(x5, ring.ChunkSeq))
	s.CmpImmW(x15, ring.SmallFirst)
	s.BCond(arm64.CondLO, small)
	s.pop(ring.HdrPool, small)
	s.B(got)
	s.Place(small)
	s.pop(ring.HdrSmallPool, large)
	s.B(got)
	s.Place(large)
	s.pop(ring.HdrPool, none)
	s.Place(got)
}

// startDropping begins a time of dropping, with no entry dropped yet; no signal may come between its instructions.
func (s *slowPath) startDropping() {
	already := s.NewLabel()
	s.unlessZero(4, s.slot(ring.SlotMode), already)
	s.Store(8, zr, s.slot(ring.SlotMark))
	s.Movz(x15, modeDropping, 0)
	s.Store(4, x15, s.slot(ring.SlotMode))
	s.Place(already)
}

// How often a thread waits, 100 to 160 µs each time: some 3 s if it has no chunk, since then there may never be one for it, and 15 s if it
// only has to wait until the recorder has drained its own.
const (
	maxNapsWithout = 20_000
	maxNaps        = 100_000
)

// wait sleeps 100 µs with the old signal mask and starts again, unless the recorder has been silent for too long.
func (s *slowPath) wait(dead arm64.Label) {
	has := s.NewLabel()
	s.MovImm(x0, maxNaps)
	s.unlessZero(4, s.slot(ring.SlotChunk), has)
	s.MovImm(x0, maxNapsWithout)
	s.Place(has)
	s.AddImm(rNaps, rNaps, 1)
	s.Cmp(rNaps, x0)
	s.BCond(arm64.CondHI, dead)
	s.heartbeat(ring.HdrWaitLimit)
	s.BCond(arm64.CondHI, dead)
	s.restoreMask()
	s.sleep()
	// Recording may have ended meanwhile, or system calls be forbidden.
	s.unlessOpen(s.leave)
	s.B(s.again)
}

// heartbeat compares the recorder's silence with a limit: "above" means dead. x0 to x2 are clobbered. The counter may have been read
// before the heartbeat: the difference is then negative, and taken for none.
func (s *slowPath) heartbeat(limit int32) {
	s.Mrs(x0, arm64.CNTVCTEL0)
	s.Load(8, x1, s.hdr(ring.HdrHeartbeat))
	s.Load(8, x2, s.hdr(limit))
	s.Sub(x0, x0, x1)
	s.AsrImm(x1, x0, 63)
	s.Bic(x0, x0, x1)
	s.Cmp(x0, x2)
}

// installChunk makes chunk x2 (index+1) the thread's own. rTo is where its claim word goes, SlotClaim or SlotSpare.
func (s *slowPath) installChunk() {
	s.Place(s.install)
	if s.cfg.Overwrite {
		s.adopt()
	}
	first, linked := s.NewLabel(), s.NewLabel()
	s.Mov(x0, x2)
	s.placeOf()
	s.chunk(x5, x0)
	s.AddImm(x4, x5, ring.ChunkHeader)
	// What is new to the process is read before it is written: the kernel maps 16 pages at a fault then, as many as a chunk has, and not
	// one. The recorder has made the pages.
	s.Load(4, x1, arm64.At(x5, 0))
	s.AddLSL(x1, x4, x3, 4) // times ring.EventSize
	s.Load(4, x1, arm64.At(x1, -4))
	s.emptyWord()
	s.Load(4, x0, s.slot(ring.SlotChunk))
	s.Store(4, x2, s.slot(ring.SlotChunk))
	s.Store(8, x3, arm64.At(rTo, 0))
	s.CbzW(x0, first)
	s.placeOf()
	s.chunk(x6, x0)
	if !s.cfg.Overwrite { // else adopt has numbered it
		s.Load(4, x1, arm64.At(x6, ring.ChunkSeq))
		s.AddImmW(x1, x1, 1)
		s.Store(4, x1, arm64.At(x5, ring.ChunkSeq))
	}
	s.storeRelease(4, x2, x6, ring.ChunkNext)
	s.B(linked)
	s.Place(first)
	if !s.cfg.Overwrite {
		s.Movz(x1, 1, 0)
		s.Store(4, x1, arm64.At(x5, ring.ChunkSeq))
		s.storeRelease(4, x2, rSlot, ring.SlotFirst)
	}
	s.Place(linked)
	s.Tbz(rWord, 0, s.claim)
	s.ifZero(8, s.slot(ring.SlotSpare), s.claim)
	s.B(s.exitSpare)
}

// spareExit writes the exit of an accepted call into the thread's spare chunk, which it takes from the reserve.
func (s *slowPath) spareExit() {
	take, lost, dead, sure := s.NewLabel(), s.NewLabel(), s.NewLabel(), s.NewLabel()
	s.Place(s.exitSpare)
	s.ifZero(4, s.slot(ring.SlotMode), sure)
	s.belowMark(s.unblock)
	s.Place(sure)
	s.startDropping()
	s.claimAt(ring.SlotSpare, take)
	if s.payload {
		s.withoutPayload()
	}
	s.B(s.write)
	s.Place(take)
	s.Store(8, zr, s.slot(ring.SlotSpare))
	s.pop(ring.HdrReserve, lost)
	s.AddImm(rTo, rSlot, ring.SlotSpare)
	s.B(s.install)
	s.Place(lost)
	s.wait(dead) // an accepted entry gets its exit as long as there is a recorder to make space
	s.Place(dead)
	s.increment(ring.SlotLostExits)
	s.Place(s.unblock)
}

// dropEntry counts an entry that is dropped and closes the gate when the recorder is dead. Signals are not blocked. The mark may only
// rise; a handler that comes between its reading and writing runs deeper in the stack, so its own mark is lower.
func (s *slowPath) dropEntry() {
	marked := s.NewLabel()
	s.Place(s.entryDrop)
	s.increment(ring.SlotDropped)
	s.belowMark(marked)
	s.Store(8, rSP, s.slot(ring.SlotMark))
	s.Place(marked)
	s.heartbeat(ring.HdrCloseLimit)
	s.BCond(arm64.CondLS, s.out)
	s.shut()
	s.B(s.out)
}

// shut closes the gate. x0 and x15 are clobbered.
func (s *slowPath) shut() {
	s.Movz(x0, stub.GateShut, 0)
	s.AddressOf(x15, s.cfg.Gate)
	s.Store(1, x0, arm64.At(x15, stub.GateTop))
}
