package plan

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sort"
	"sync"

	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/discover"
)

// finder looks for functions of arm64 in what lies between those that are known. Evidence is only what code says that control comes to, from known
// functions on, and what data says: a word that looks like a call counts for nothing, as a site in data would change it.
type finder struct {
	im   *Image
	gaps []span64 // by address
	left int      // words in gaps that may still be looked at

	mu     sync.Mutex // guards what follows
	starts map[uint64]discover.Evidence
	jumped map[uint64]bool // where jumps lead that leave a function

	found map[uint64]foundWords // what was made of the starts
}

// foundWords is the code from a start on, up to a limit.
type foundWords struct {
	limit, end uint64
	sound      bool     // it is code throughout, and control doesn't run out of its end
	returns    bool     // it has a return, or a jump through a register: four bytes that data hardly has
	jumps      []uint64 // where it jumps to outside
}

// gapLooks is how often each word of a gap may be looked at, on the average.
const gapLooks = 64

// foundPasses bounds how often functions that were found lead to others.
const foundPasses = 64

// searchARM64 looks for functions in code of arm64.
func (im *Image) searchARM64(ctx context.Context) ([]discover.Function, error) {
	f := &finder{im: im, starts: map[uint64]discover.Evidence{}, jumped: map[uint64]bool{}, found: map[uint64]foundWords{}}
	size := f.findGaps()
	if size == 0 || im.Object.Take(size, "a search for functions in so much code") != nil {
		return nil, nil // what is known does without
	}
	im.cutPieces() // as far as the functions are known, for the walks
	im.labelled = make(bitset, (len(im.chunks)+31)/32)
	each(len(im.chunks), func() func(from, to int) {
		w := &walker{im: im, frames: frameRows{im: im}}
		return func(from, to int) {
			for i := from; i < to && ctx.Err() == nil; i++ {
				f.walk(w, im.chunks[i].start, im.chunkLimit(i))
			}
		}
	})
	if err := im.eachPointer(func(addr uint64) { f.start(addr, discover.Pointed) }); err != nil {
		return nil, err
	}
	w := &walker{im: im, frames: frameRows{im: im}}
	for range foundPasses {
		if f.pass(ctx, w) || ctx.Err() != nil {
			break
		}
	}
	return f.functions(w), ctx.Err()
}

// chunkLimit is where the code of a chunk ends at the latest.
func (im *Image) chunkLimit(i int) uint64 {
	c := &im.chunks[i]
	end := c.end
	if end == c.start {
		end = im.textAt(c.start).end
	}
	if i+1 < len(im.chunks) && im.chunks[i+1].start > c.start {
		end = min(end, im.chunks[i+1].start)
	}
	return min(end, im.textAt(c.start).end)
}

// findGaps finds what no chunk and no linkage code has, and returns how many bytes that is.
func (f *finder) findGaps() (size uint64) {
	var taken []span64
	for i := range f.im.chunks {
		c := &f.im.chunks[i]
		end := c.end
		if end == c.start { // up to the next, as nothing says how long it is
			end = f.im.chunkLimit(i)
		}
		taken = append(taken, span64{c.start, end})
	}
	for _, r := range f.im.linkage {
		taken = append(taken, span64{r.Start, r.End})
	}
	slices.SortFunc(taken, func(a, b span64) int { return cmp.Compare(a.start, b.start) })
	k := 0
	for i := range f.im.texts {
		t := &f.im.texts[i]
		at := t.start
		for k < len(taken) && taken[k].end <= at {
			k++
		}
		for ; k < len(taken) && taken[k].start < t.end; k++ {
			if taken[k].start > at {
				f.gaps = append(f.gaps, span64{at, taken[k].start})
			}
			if at = max(at, taken[k].end); at >= t.end {
				break
			}
		}
		if at < t.end {
			f.gaps = append(f.gaps, span64{at, t.end})
		}
	}
	for _, g := range f.gaps {
		size += g.end - g.start
	}
	f.left = gapLooks * int(size/arm64.Len)
	return size
}

// gap returns the one that has addr.
func (f *finder) gap(addr uint64) (span64, bool) {
	i := sort.Search(len(f.gaps), func(i int) bool { return f.gaps[i].end > addr })
	if i == len(f.gaps) || f.gaps[i].start > addr {
		return span64{}, false
	}
	return f.gaps[i], true
}

// start notes that a function may begin at addr.
func (f *finder) start(addr uint64, why discover.Evidence) {
	if addr&3 != 0 {
		return
	}
	if _, ok := f.gap(addr); !ok {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if old := f.starts[addr]; old == 0 || why < old {
		f.starts[addr] = why
	}
}

// walkGap is walk in a gap, as long as that isn't too much.
func (f *finder) walkGap(w *walker, start, limit uint64) foundWords {
	for window := uint64(leastWindow); ; window *= 4 {
		end := min(limit, start+min(window, maxFunction))
		if f.left -= int((end - start) / arm64.Len); f.left < 0 {
			return foundWords{limit: limit, end: start}
		}
		if r := f.walk(w, start, end); end == limit || window >= maxFunction || !w.reachesFor(end, limit) {
			r.limit = limit
			return r
		}
	}
}

// How much code is looked at at first for where a function may end, and how far one leads that jumps without a condition.
const (
	leastWindow = 1 << 12
	jumpWindow  = 1 << 14
)

// reachesFor says whether the code that was walked through may go on from end, up to limit.
func (w *walker) reachesFor(end, limit uint64) bool {
	if w.arrays || w.words[len(w.words)-1].reached {
		return true
	}
	return slices.ContainsFunc(w.jumps, func(j jump) bool {
		in := &w.words[j.k]
		return j.to >= end && j.to < limit && (in.Kind == arm64.CondJump || j.to-in.addr < jumpWindow)
	})
}

// walk follows the code from start up to limit and notes what it calls, names and jumps to in gaps.
func (f *finder) walk(w *walker, start, limit uint64) (r foundWords) {
	r = foundWords{limit: limit, end: start}
	w.begin()
	if limit-start > maxFunction || f.im.isLinkage(start) || !w.add(start, limit) {
		return r
	}
	w.own = func(addr uint64) bool { return addr >= start && addr < limit }
	w.walk()
	last := 0
	for k := range w.words {
		in := &w.words[k]
		if !in.reached || in.role == roleDetour {
			continue
		}
		last = k
		if to, ok := in.Target(in.addr); ok && in.Kind == arm64.Call {
			f.start(to, discover.Called)
		} else if ok && !w.own(to) {
			r.jumps = append(r.jumps, to)
			if _, inGap := f.gap(to); inGap {
				f.mu.Lock()
				f.jumped[to] = true
				f.mu.Unlock()
			}
		}
		switch {
		case in.Kind == arm64.Return && in.Rn() == arm64.LR, in.Kind == arm64.Return && in.Class == arm64.BranchAuth, in.Kind == arm64.IndirectJump:
			r.returns = true
		}
		if at, ok := w.named(k); ok && !w.reads(k) {
			f.start(at, discover.Pointed)
		}
	}
	end := &w.words[last]
	r.end = end.end()
	if w.arrays { // what follows may be where it goes: labels, of which data holds the addresses
		for r.end = start + uint64(len(w.words))*arm64.Len; r.end > end.end() && w.words[(r.end-start)/arm64.Len-1].IsNop(); r.end -= arm64.Len {
		}
	}
	r.sound = w.badAt == 0 && end.reached && (end.Ends() || end.calls()) && w.words[0].Kind != arm64.Undefined
	return r
}

// named returns the address that words[k] computes, by adr, or with an adrp right before it.
func (w *walker) named(k int) (uint64, bool) {
	const near = 4
	in := &w.words[k]
	if in.Class == arm64.Address && !in.IsADRP() {
		return in.MemTarget(in.addr)
	}
	if in.Word&0xFF000000 != 0x91000000 {
		return 0, false
	}
	for n := k - 1; n >= max(0, k-near); n-- {
		if d := &w.words[n]; d.WritesReg(in.Rn()) {
			page, ok := d.MemTarget(d.addr)
			return page + uint64(in.Word>>10&0xFFF), ok && d.IsADRP()
		}
	}
	return 0, false
}

// reads says whether the address that words[k] computes is used as that of data soon after.
func (w *walker) reads(k int) bool {
	const soon = 16
	r := w.words[k].Rd()
	for n := k + 1; n < min(len(w.words), k+1+soon); n++ {
		in := &w.words[n]
		if in.Base == r && r != arm64.SP {
			return true
		}
		if in.WritesReg(r) || in.Ends() {
			break
		}
	}
	return false
}

// pass looks at all starts once, each up to the next that is called. It reports true when nothing has changed.
func (f *finder) pass(ctx context.Context, w *walker) (done bool) {
	starts := slices.Sorted(maps.Keys(f.starts))
	done = true
	limit, of := uint64(0), span64{}
	for _, start := range slices.Backward(starts) {
		if ctx.Err() != nil {
			return true
		}
		if g, _ := f.gap(start); g != of {
			limit, of = g.end, g
		}
		if before, ok := f.found[start]; !ok || before.limit != limit {
			done = false
			f.found[start] = f.walkGap(w, start, limit)
		}
		if f.starts[start] == discover.Called {
			limit = start
		}
	}
	return done && len(starts) == len(f.starts)
}

// functions returns what is taken for functions: what is called, if it is code; what data or an instruction has the address of, if it is that,
// leaves as code does, and nothing runs into it; and what functions jump into and that jumps back into the middle of one, as a part.
func (f *finder) functions(w *walker) (out []discover.Function) {
	starts := slices.Sorted(maps.Keys(f.starts))
	reach := uint64(0)
	for _, start := range starts {
		r, why := f.found[start], f.starts[start]
		switch {
		case !r.sound, why != discover.Called && (start < reach || !f.ended(start) || !f.leaves(&r)):
			continue
		}
		reach = max(reach, r.end)
		out = append(out, discover.Function{Range: discover.Range{Start: start, End: r.end}, Evidence: why})
	}
	whole := len(out)
	inside := func(addr uint64) bool {
		i := sort.Search(whole, func(i int) bool { return out[i].Start >= addr })
		if i > 0 && addr < out[i-1].End {
			return true
		}
		k := f.im.chunkAfter(addr) // the first that begins there or behind
		return (k == len(f.im.chunks) || f.im.chunks[k].start != addr) && k > 0 && addr < f.im.chunks[k-1].end
	}
	reach = 0
	for _, start := range slices.Sorted(maps.Keys(f.jumped)) {
		i := sort.Search(whole, func(i int) bool { return out[i].Start > start })
		if i > 0 && start < out[i-1].End || start < reach {
			continue
		}
		g, _ := f.gap(start)
		limit := g.end
		if i < whole {
			limit = min(limit, out[i].Start)
		}
		if r := f.walkGap(w, start, limit); r.sound && slices.ContainsFunc(r.jumps, inside) {
			reach = r.end
			out = append(out, discover.Function{Range: discover.Range{Start: start, End: r.end}, Evidence: discover.Behind, Part: true})
		}
	}
	slices.SortFunc(out, func(a, b discover.Function) int { return cmp.Compare(a.Start, b.Start) })
	return out
}

// leaves says whether the code leaves in a way that data hardly looks like: it returns, or jumps to a function's very start.
func (f *finder) leaves(r *foundWords) bool {
	return r.returns || slices.ContainsFunc(r.jumps, func(to uint64) bool {
		k := f.im.chunkAfter(to)
		return f.starts[to] == discover.Called || f.im.isLinkage(to) || k < len(f.im.chunks) && f.im.chunks[k].start == to
	})
}

// ended says whether the code in front of addr ends there as functions do: by a return or a trap, or with padding or alignment behind whatever doesn't
// go on. Behind a jump alone there may be a label of the same function.
func (f *finder) ended(addr uint64) bool {
	t := f.im.textAt(addr)
	apart := addr%16 == 0
	for at := addr; at-t.start >= arm64.Len; apart = true {
		at -= arm64.Len
		var in arm64.Inst
		if arm64.DecodeWord(&in, t.word(at)) != nil {
			return false
		}
		if !in.IsNop() {
			return in.Kind == arm64.Return || in.Kind == arm64.Breakpoint || in.Kind == arm64.Undefined || apart && (in.Ends() || in.Kind == arm64.Call)
		}
	}
	return true
}
