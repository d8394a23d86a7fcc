package unwind

import "slices"

// byChain goes on with return addresses that frame pointers led to, from where the last frame stands among them. A Go program's threads
// change to their own stacks for what the runtime does, and keep the goroutine's frame pointer, so that its callers are in the chain. The
// stack pointers of such frames aren't known.
func (w *Walker) byChain(chain []uint64, frames []Frame, why End, limit int) ([]Frame, End) {
	last := frames[len(frames)-1].PC
	k := slices.Index(chain, last)
	if k < 0 || k+1 == len(chain) {
		return frames, why
	}
	for _, pc := range chain[k+1:] {
		pc &= w.arch.strip
		slot := w.find(pc, false)
		e := &w.cache[slot]
		if e.kind == kindNotCode || e.traits&afterCall == 0 && e.kind != kindOutermost {
			return frames, why
		}
		if len(frames) >= limit {
			return frames, End{Reason: TooDeep}
		}
		frames = append(frames, Frame{PC: pc, By: ByFramePointer, Flags: e.flags})
		if e.kind == kindOutermost {
			return frames, End{}
		}
	}
	return frames, why
}
