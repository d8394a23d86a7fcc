package unwind

import (
	"slices"

	"github.com/callreel/callreel/cfi"
)

// DefaultMaxFrames bounds a walk by default. A recursion that overflows a stack of
// 8 MB has some 170,000 frames.
const DefaultMaxFrames = 1 << 18

// Options says how a Walker goes about it. The zero value is usable.
type Options struct {
	// MaxFrames bounds the frames of one walk; 0 means DefaultMaxFrames.
	MaxFrames int
	// Original is asked about code that no file is behind, before any rule: it may
	// change the registers to what they stand for, as in code that callreel itself
	// has put into the process, and then returns true.
	Original func(*Registers) bool
}

// A Walker walks stacks of one address space. It keeps what it learns from one walk
// to the next, and its memory: a walk over known code allocates nothing but what
// the list of frames takes. It must not be used by several goroutines at once.
type Walker struct {
	arch   *Arch
	images Images
	opt    Options
	cache  *cache
	rows   []cfi.Row

	machine   cfi.Machine
	evaluator cfi.Evaluator
	evalInput cfi.EvalInput
	evalRegs  *Registers // that an expression sees
	few       Registers  // those that a fast walk keeps
	scratch   Registers  // for Options.Original
	follower  follower
	a64       a64Follower
	around    around

	// The code that the last walk by frame pointers was in.
	code, codeBefore codeRange

	reader reader
	walk   walk
}

// walk is the state of one walk.
type walk struct {
	sp, fp  uint64 // of the last frame
	fpKnown bool
	adrift  bool   // sp is in no stack: the code was about to overflow it, or has lost it
	slot    uint32 // of the last frame's entry
	entry   entry  // a copy of it: compiling another may take its slot

	// regs are all registers, of the frame regsAt. A fast walk carries on stack
	// pointer and frame pointer only, and they are caught up with when needed.
	regs   Registers
	regsAt int
	first  int // index of the thread's first frame in the list

	stacks []stackMark
}

// NewWalker makes a Walker for an address space.
func NewWalker(arch *Arch, images Images, opt Options) *Walker {
	if opt.MaxFrames <= 0 {
		opt.MaxFrames = DefaultMaxFrames
	}
	w := &Walker{arch: arch, images: images, opt: opt, cache: new(cache)}
	w.evalInput = cfi.EvalInput{
		AddrSize: int(arch.wordSize), ByteOrder: arch.order, Reg: w.evalReg, Read: w.reader.readExpr,
	}
	return w
}

// SetImages changes what is mapped where and forgets what was known of it.
func (w *Walker) SetImages(images Images) {
	w.images = images
	w.forget()
}

func (w *Walker) forget() {
	clear(w.cache[:])
	w.code, w.codeBefore = codeRange{}, codeRange{}
	w.rows = w.rows[:0]
}

// Walk appends the frames of a thread to frames, innermost first, and says how the
// walk ended. The first frame is always there. Nothing of the snapshot is kept.
func (w *Walker) Walk(s *Snapshot, frames []Frame) ([]Frame, End) {
	w.reader.reset(w.arch, s)
	defer w.reader.release()
	frames, end, ok := w.begin(s, frames)
	limit := w.walk.first + w.opt.MaxFrames
	for ok {
		before := len(frames)
		if frames = w.fast(frames, limit); len(frames)-before >= fastFrames && len(frames) < limit {
			continue // there may have been no more room
		}
		if len(frames) >= limit {
			if w.walk.entry.kind == kindOutermost {
				return frames, End{}
			}
			return frames, End{Reason: TooDeep, Addr: w.walk.sp}
		}
		adrift := w.walk.adrift
		if frames, end, ok = w.step(frames); !ok && adrift && !end.Complete() {
			end = End{Reason: NoStack, Addr: w.walk.sp}
		}
	}
	if end.Reason == Unreadable && len(s.Chain) > 0 {
		return w.byChain(s.Chain, frames, end, limit)
	}
	return frames, end
}

// begin appends the thread's first frame.
func (w *Walker) begin(s *Snapshot, frames []Frame) ([]Frame, End, bool) {
	k := &w.walk
	k.regs, k.stacks, k.first, k.regsAt = s.Regs, k.stacks[:0], len(frames), len(frames)
	w.original(&k.regs)
	k.regs.PC &= w.arch.strip
	k.sp, _ = k.regs.Get(w.arch.sp)
	k.fp, k.fpKnown = k.regs.Get(w.arch.fp)
	w.reader.enter(k.sp)
	w.enterEntry(k.regs.PC, !s.Return)
	first := Frame{PC: k.regs.PC, SP: k.sp, By: ByRegisters, Flags: k.entry.flags}
	if !s.Return {
		first.Flags |= Exact
	}
	frames = append(frames, first)
	k.adrift = !w.inStack(k.sp)
	return frames, End{}, true
}

// inStack says whether a stack pointer is where a stack can be. At the very end of one it
// holds nothing, but is right.
func (w *Walker) inStack(sp uint64) bool {
	m, ok := w.images.Mapping(sp)
	if !ok || !m.Write {
		m, ok = w.images.Mapping(sp - 1)
	}
	return ok && m.Write
}

// original asks whether the code that the registers are in stands for other code.
func (w *Walker) original(r *Registers) bool {
	if w.opt.Original == nil {
		return false
	}
	if m, ok := w.images.Mapping(r.PC); ok && m.Image != nil {
		return false
	}
	w.scratch = *r // so that r itself need not be on the heap
	changed := w.opt.Original(&w.scratch)
	*r = w.scratch
	return changed
}

// find returns the slot of an address's entry, which is made when there is none.
func (w *Walker) find(pc uint64, exact bool) uint32 {
	key := w.arch.keyOf(pc, exact)
	slot, known := w.cache.slot(key)
	if !known {
		made := w.compile(pc, exact) // may forget all entries
		made.finish(exact)
		slot = w.cache.slotFor(key)
		w.cache[slot] = made
	}
	return slot
}

// enterEntry makes the entry of an address the walk's own.
func (w *Walker) enterEntry(pc uint64, exact bool) {
	w.walk.slot = w.find(pc, exact)
	w.walk.entry = w.cache[w.walk.slot]
}

// fast walks as long as addresses are known, rules are simple, and the stack is in
// the current block. Whatever is out of the ordinary is left to step, which also
// finds out what is wrong. Words have eight bytes here: other architectures have no
// entries of the simple kinds. The stack pointer is aligned, and so are the offsets of
// those entries.
//
// The slot of the entry that comes next is guessed from the last time, so that the
// processor need not wait for the return address to be loaded and hashed.
func (w *Walker) fast(frames []Frame, limit int) []Frame {
	k := &w.walk
	words, base := w.reader.current.words, w.reader.current.wordsAt
	if len(words) == 0 || !k.fpKnown || k.sp&7 != 0 {
		return frames
	}
	if want := min(limit-len(frames), fastFrames); cap(frames)-len(frames) < want {
		frames = slices.Grow(frames, want)
	}
	out := frames[len(frames):min(cap(frames), limit)]
	var late Flags
	if w.reader.current.late {
		late = Late
	}
	sp, fp, slot, cache := k.sp, k.fp, k.slot, w.cache
	e := &cache[slot&cacheMask]
	if e.key != k.entry.key { // its slot was taken meanwhile
		return frames
	}
	count := 0
	for count < len(out) {
		var cfa uint64
		if e.kind == kindSP {
			cfa = sp + uint64(int64(e.cfaOff))
		} else if cfa = fp + uint64(int64(e.cfaOff)); e.kind != kindFP || cfa < sp+uint64(e.least) || cfa&7 != 0 {
			break
		}
		at := (cfa - 8 - base) / 8
		if at >= uint64(len(words)) {
			break
		}
		ra := words[at]
		callerFP := fp
		if e.fpOff != 0 {
			if at = (cfa + uint64(int64(e.fpOff)) - base) / 8; at >= uint64(len(words)) {
				break
			}
			callerFP = words[at]
		}
		next := e.next
		n := &cache[next&cacheMask]
		if n.key != ra {
			var known bool
			if next, known = cache.slot(ra); !known {
				break
			}
			n = &cache[next&cacheMask]
			e.next = next
		}
		if e.need&^n.traits != 0 {
			break
		}
		f := &out[count]
		f.PC, f.SP, f.By, f.Flags = ra, cfa, e.by, n.flags|late
		count++
		sp, fp, slot, e = cfa, callerFP, next, n
	}
	k.sp, k.fp, k.slot, k.entry = sp, fp, slot, *e
	return frames[:len(frames)+count]
}

// fastFrames is for how many frames there should be room before a fast walk.
const fastFrames = 64
