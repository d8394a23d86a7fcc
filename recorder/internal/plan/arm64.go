package plan

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"sort"

	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/hugepage"
)

// On arm64 each instruction has four bytes and a site is one of them, which one store replaces by a branch. So no branch leads into the middle of
// a site, every exit has space, and neither islands nor redirected jumps are needed. What is left is to know which instructions leave a function,
// and which words aren't instructions at all: where code ends without falling through, data may follow.

// planARM64 decides for every function of an image of arm64 how it can be probed.
func (im *Image) planARM64(ctx context.Context) ([]Function, error) {
	if err := im.findChunks(ctx); err != nil {
		return nil, err
	}
	im.cutPieces()
	im.cover()
	if im.Go != nil {
		im.takeAssembly(assemblyARM64())
	}
	im.takeWords()
	if err := im.markData(); err != nil {
		return nil, err
	}
	if err := im.markLandingPads(); err != nil {
		return nil, err
	}
	im.markResumes()
	im.sweepWords()
	im.markCancellationARM64()
	fns := im.join()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	im.findSlots(im.referencesARM64, im.callsOfARM64)
	im.findMarks(fns, newWordPlanner(im, fns).placeMarks)
	out := hugepage.Make[Function](len(fns))
	each(len(fns), func() func(from, to int) {
		p := newWordPlanner(im, fns)
		return func(from, to int) {
			for i := from; i < to; i++ {
				out[i] = im.describe(&fns[i])
				if im.MarksOnly {
					out[i].Reason = ReasonUnasked
					p.hook(i, &out[i])
					continue
				}
				p.plan(i, &out[i])
			}
		}
	})
	out = inOrder(out)
	im.settleSlots(out)
	return out, ctx.Err()
}

// takeWords marks each whole word of code as the beginning of an instruction, by which markData knows a label from a number; what really is one
// is found by sweepWords. And it claims what code names, as code or as data, by adr, adrp or a literal; by adrp that is a page.
func (im *Image) takeWords() {
	for i := range im.texts {
		t := &im.texts[i]
		first := -t.start & 3
		each(int(t.end-t.start-min(first, t.end-t.start))/arm64.Len, func() func(from, to int) {
			starts := adder{set: t.starts}
			return func(from, to int) {
				for k := from; k < to; k++ {
					off := first + uint64(k)*arm64.Len
					starts.add(off)
					im.claimNamed(t.start+off, t.word(t.start+off))
				}
				starts.flush()
			}
		})
	}
}

// claimNamed claims what a word at pc names, if it is an instruction that does.
func (im *Image) claimNamed(pc uint64, word uint32) {
	if word&0x1F000000 != 0x10000000 && word&0x3B000000 != 0x18000000 {
		return
	}
	var in arm64.Inst
	if arm64.DecodeWord(&in, word) != nil {
		return
	}
	at, ok := in.MemTarget(pc)
	if !ok {
		return
	}
	if !in.IsADRP() {
		im.claimCode(at, at+arm64.Len)
		return
	}
	if !im.hasCode(at, at+adrpPage) {
		return
	}
	// The rest of the address is in what uses the register.
	t, uses := im.textAt(pc), 0
	for n := uint64(1); n <= adrpUses && pc+(n+1)*arm64.Len <= t.end; n++ {
		var use arm64.Inst
		if arm64.DecodeWord(&use, t.word(pc+n*arm64.Len)) != nil {
			break
		}
		switch {
		case use.Class == arm64.AddSubImm && use.Rn() == in.Rd() && use.Word&0xFF000000 == 0x91000000:
			low := at + uint64(use.Word>>10&0xFFF)
			im.claimCode(low, low+arm64.Len)
			uses++
		case use.Base == in.Rd() && !use.Index:
			low := at + uint64(int64(use.Disp))
			im.claimCode(low, low+arm64.Len)
			uses++
		}
		if use.WritesReg(in.Rd()) || use.Ends() {
			break
		}
	}
	if uses == 0 {
		im.claimCode(at, at+adrpPage)
	}
}

const (
	adrpPage = 4096 // what adrp names
	adrpUses = 24   // instructions behind it in which its use is looked for
)

// hasCode says whether there is code between two addresses.
func (im *Image) hasCode(from, to uint64) bool {
	i := im.textAfter(from)
	return i < len(im.texts) && im.texts[i].start < to
}

// textAfter returns the index of the first run of code that ends behind addr.
func (im *Image) textAfter(addr uint64) int {
	return sort.Search(len(im.texts), func(i int) bool { return im.texts[i].end > addr })
}

// claimCode claims what is code between two addresses.
func (im *Image) claimCode(from, to uint64) {
	for i := im.textAfter(from); i < len(im.texts) && im.texts[i].start < to; i++ {
		t := &im.texts[i]
		t.claim(max(from, t.start), min(to, t.end))
	}
}

// word returns the instruction at addr, 0 outside of code.
func (t *text) word(addr uint64) uint32 {
	off := addr - t.start
	if off+arm64.Len > uint64(len(t.data)) {
		return 0
	}
	return binary.LittleEndian.Uint32(t.data[off:])
}

// sweepWords walks through every chunk once, along the ways that control takes, and notes where these lead outside of it.
func (im *Image) sweepWords() {
	im.swept = hugepage.Make[sweep](batches(len(im.chunks)))
	each(len(im.chunks), func() func(from, to int) {
		w := walker{im: im, frames: frameRows{im: im}}
		return func(from, to int) {
			for i := from; i < to; i++ {
				im.swept[i/batchSize].jumpsOut.put(i, w.sweep(i))
			}
		}
	})
}

// sweep walks through chunk i and returns where direct jumps lead that leave it, sorted.
func (w *walker) sweep(i int) []uint64 {
	c := &w.im.chunks[i]
	w.begin()
	end := w.im.sweptEnd(i)
	if c.linkage || end-c.start > maxFunction || !w.add(c.start, end) {
		c.closed = true
		return nil
	}
	w.own = func(addr uint64) bool { return addr >= c.start && addr < c.end }
	w.walk()
	w.out = w.out[:0]
	t := w.im.textAt(c.start)
	for k := range w.words {
		in := &w.words[k]
		if !in.reached || !in.known || in.role == roleDetour {
			continue
		}
		c.closed = in.Ends() || in.Kind == arm64.Call || c.closed && in.IsNop()
		to, ok := in.Target(in.addr)
		switch {
		case !ok:
		case in.Kind != arm64.Call && w.own(to):
			t.targets.add(to - t.start)
		case in.Kind != arm64.Call:
			w.out = append(w.out, to)
			w.im.markTarget(to)
		default:
			w.im.markTarget(to)
		}
	}
	for _, to := range w.beyond { // by tables
		w.out = append(w.out, to)
		w.im.markTarget(to)
	}
	slices.Sort(w.out)
	return slices.Compact(w.out)
}

// chunkStartsAt says whether a chunk begins at addr.
func (im *Image) chunkStartsAt(addr uint64) bool {
	k := im.chunkAt(addr)
	return k >= 0 && im.chunks[k].start == addr
}

// signalReturnARM64 is the code by which unwinders know a signal frame (libgcc's config/aarch64/linux-unwind.h): mov x8, #139; svc #0.
var signalReturnARM64 = []byte{0x68, 0x11, 0x80, 0xD2, 0x01, 0x00, 0x00, 0xD4}

func (c *chunk) isSignalReturnARM64(im *Image) bool {
	t := im.textAt(c.start)
	return c.end-c.start <= 16 && bytes.HasPrefix(t.data[c.start-t.start:], signalReturnARM64)
}

// markCancellationARM64 finds what markCancellation does.
func (im *Image) markCancellationARM64() {
	seen := map[int]int{}
	for i := range im.chunks {
		c := &im.chunks[i]
		if !c.waits {
			continue
		}
		t := im.textAt(c.start)
		var called []int
		syscalls := false
		for pc := c.start; pc+arm64.Len <= c.end; pc += arm64.Len {
			var in arm64.Inst
			if arm64.DecodeWord(&in, t.word(pc)) != nil {
				continue
			}
			if to, direct := in.Target(pc); direct && in.Kind == arm64.Call {
				if k := im.chunkAt(to); k >= 0 && im.chunks[k].start == to && !slices.Contains(called, k) {
					called = append(called, k)
				}
			}
			syscalls = syscalls || in.Kind == arm64.Syscall
		}
		if syscalls {
			for _, k := range called {
				seen[k]++
			}
		}
	}
	for k, n := range seen {
		if n > 1 {
			im.chunks[k].cancels = true
		}
	}
}
