package plan

import (
	"slices"

	"github.com/callreel/callreel/isa/amd64"
)

// extendFrames lengthens functions that only an FDE tells the end of, where that is before the code's: assembly ends the FDE where its
// rules hold no more, as clone3 does before the system call, whose child has nothing to return to. Such code runs out of its FDE into code
// that nothing names. An FDE that follows without padding, and that the code jumps into, is of the same function.
func (im *Image) extendFrames() {
	kept := im.chunks[:0]
	for i := 0; i < len(im.chunks); {
		next := i + 1
		if im.chunks[i].framed {
			next = im.extendFrame(i)
		}
		kept = append(kept, im.chunks[i])
		i = next
	}
	im.chunks = kept
}

// maxTails is how many FDEs are taken in by one function, at most.
const maxTails = 8

// extendFrame is extendFrames for one chunk. It returns the index of the first one behind that isn't taken in.
func (im *Image) extendFrame(i int) (next int) {
	c := &im.chunks[i]
	t := im.textAt(c.start)
	var jumps []uint64
	from := c.start
	for next = i + 1; t != nil && c.end < t.end && next-i <= maxTails; next++ {
		limit := t.end
		if next < len(im.chunks) {
			limit = min(limit, im.chunks[next].start)
		}
		var first amd64.Inst
		adjacent := limit == c.end && next > i+1 // behind what was taken in already
		if !adjacent && (limit <= c.end || !t.decode(&first, c.end, limit) || isPadding(&first)) {
			return next
		}
		inside, open := t.run(from, c.end)
		if !open || adjacent && !im.chunks[next].isTail(limit, append(inside, jumps...)) {
			return next
		}
		between, falls := t.run(c.end, limit)
		jumps = slices.Concat(jumps, inside, between)
		if next == len(im.chunks) || falls || !im.chunks[next].isTail(limit, jumps) {
			c.end, c.guessed = limit, true // the sweep finds where it ends
			return next
		}
		from, c.end = im.chunks[next].start, im.chunks[next].end
	}
	return next
}

// isTail says whether a chunk may be what follows at addr in a function that jumps to those places.
func (c *chunk) isTail(addr uint64, jumps []uint64) bool {
	return c.framed && c.names.n == 0 && c.start == addr &&
		slices.ContainsFunc(jumps, func(to uint64) bool { return to >= c.start && to < c.end })
}

// isPadding says whether an instruction is none that is executed between functions.
func isPadding(in *amd64.Inst) bool { return in.IsNop() || in.Kind == amd64.Breakpoint }

// run is where the direct jumps of some code go, and whether control runs out of its end: not behind a call, which may not return, nor
// behind padding or what can't be decoded.
func (t *text) run(pc, end uint64) (jumps []uint64, open bool) {
	var in amd64.Inst
	for pc < end {
		if !t.decode(&in, pc, end) {
			return jumps, false
		}
		if to, direct := in.Target(pc); direct && in.Kind != amd64.Call {
			jumps = append(jumps, to)
		}
		open = !in.Ends() && in.Kind != amd64.Call && in.Kind != amd64.IndirectCall && !isPadding(&in)
		pc += uint64(in.Len)
	}
	return jumps, open
}
