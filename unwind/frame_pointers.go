package unwind

import (
	"slices"
	"unsafe"
)

// WalkFramePointers is Walk by frame pointers alone, for code that is known to keep
// them, as Go's and much of what JIT compilers make. It looks at nothing but the
// stack: each frame record must lie further out than the one before, be aligned, and
// hold a return address in code. The first frame's own caller is missed where the
// thread stands in a prologue, an epilogue, or a function without a frame. The end is
// Complete where the chain ends with zeros.
func (w *Walker) WalkFramePointers(s *Snapshot, frames []Frame) ([]Frame, End) {
	a := w.arch
	w.reader.reset(a, s)
	defer w.reader.release()
	sp, _ := s.Regs.Get(a.sp)
	fp, ok := s.Regs.Get(a.fp)
	frames = append(frames, Frame{PC: s.Regs.PC, SP: sp, Flags: Exact})
	if !ok {
		return frames, End{Reason: LostRegister, Addr: s.Regs.PC}
	}
	first := len(frames) - 1
	limit := first + w.opt.MaxFrames
	if a.wordSize == 8 {
		frames, sp, fp = w.chain(frames, sp, fp, limit)
	}
	for len(frames) < limit { // outside of the snapshot, and at the end
		if fp == 0 {
			return frames, End{}
		}
		if fp < sp || fp&(a.wordSize-1) != 0 {
			return frames, End{Reason: NotOutward, Addr: fp}
		}
		w.reader.late = false
		caller, ok1 := w.reader.word(fp)
		pc, ok2 := w.reader.word(a.add(fp, int64(a.wordSize)))
		if !ok1 || !ok2 {
			return frames, End{Reason: Unreadable, Addr: fp}
		}
		pc &= a.strip
		if pc == 0 && caller == 0 {
			return frames, End{}
		}
		if m, ok := w.images.Mapping(pc); !ok || !m.Exec {
			return frames, End{Reason: BadReturnAddress, Addr: pc}
		}
		sp, fp = a.add(fp, 2*int64(a.wordSize)), caller
		f := Frame{PC: pc, SP: sp, By: ByFramePointer}
		if w.reader.late {
			f.Flags |= Late
		}
		frames = append(frames, f)
	}
	return frames, End{Reason: TooDeep, Addr: sp}
}

// chain follows frame records inside of the snapshot while their return addresses lie
// in the code that the last one did, or one before that; a change is looked up.
func (w *Walker) chain(frames []Frame, sp, fp uint64, limit int) ([]Frame, uint64, uint64) {
	words, base := w.reader.snapshot.words, w.reader.snapshot.wordsAt
	if len(words) < 2 {
		return frames, sp, fp
	}
	last := uint64(len(words)-2) * 8
	first := unsafe.Pointer(unsafe.SliceData(words))
	strip := w.arch.strip
	code, before := w.code, w.codeBefore
	for len(frames) < limit {
		frames = slices.Grow(frames, min(limit-len(frames), fastFrames))
		out := frames[len(frames):min(cap(frames), limit)]
		count := 0
		for count < len(out) {
			at := fp - base
			if at > last || fp < sp || fp&7 != 0 {
				break
			}
			record := (*[2]uint64)(unsafe.Add(first, at)) // at is a multiple of 8 up to last
			caller, pc := record[0], record[1]&strip
			if pc-code.start >= code.size {
				code, before = before, code
				if pc-code.start >= code.size {
					m, ok := w.images.Mapping(pc)
					if !ok || !m.Exec {
						break
					}
					code = codeRange{m.Start, m.End - m.Start}
				}
			}
			f := &out[count]
			sp, fp = fp+16, caller
			f.PC, f.SP, f.By, f.Flags = pc, sp, ByFramePointer, 0
			count++
		}
		frames = frames[:len(frames)+count]
		if count < len(out) {
			break
		}
	}
	w.code, w.codeBefore = code, before
	return frames, sp, fp
}

// codeRange is a piece of memory that holds code.
type codeRange struct{ start, size uint64 }
