package plan

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/recorder/internal/discover"
	"github.com/callreel/callreel/recorder/internal/hugepage"
)

// chunk is one contiguous range of code that symbols or FDEs give: a function or a part of one.
type chunk struct {
	start, end uint64
	badAt      uint64 // address of bytes that aren't an instruction, 0 for none
	names      names  // none for a range that only CFI knows
	owner      int32  // index of the chunk that is the function's entry part; itself until joined

	hook     Hook
	cold     bool              // its name says that it is a part
	thunk    bool              // its name says that it is one, see thunkAt
	waits    bool              // its name says that it is one of cancellationPoints
	inner    bool              // CFI says that the stack frame isn't fresh at the start: a part
	overlap  bool              // another symbol's range overlaps it
	framed   bool              // only an FDE says where it ends
	guessed  bool              // nothing says where it ends
	found    discover.Evidence // it was found in the code; 0 if it is known otherwise
	linkage  bool
	assembly bool // of a Go program, and not made by the Go compiler
	plain    bool // that can be probed nonetheless, see takeAssembly
	cancels  bool // see markCancellation
	zone     bool // what another function keeps below the stack pointer may be alive at its start
	far      bool // has far branches
	closed   bool // the last instruction doesn't fall through
	redZone  bool // it uses memory below the stack pointer
}

// names are those of one address: a range of planning.names.
type names struct{ from, n uint32 }

// namesOf are the names that symbols give the chunk, the best first.
func (im *Image) namesOf(c *chunk) []string { return im.names[c.names.from:][:c.names.n:c.names.n] }

// name is what the chunk is called, image+0x… when it has no symbol.
func (im *Image) name(c *chunk) string {
	if c.names.n > 0 {
		return im.names[c.names.from]
	}
	if c.found != 0 {
		return foundName(c.start)
	}
	return im.Module + "+0x" + strconv.FormatUint(c.start, 16)
}

// What planning is counted for, in bytes: for each function its symbol, its chunk and what is planned; for each address of data in
// code; for each FDE.
const (
	planCost  = 512
	dataCost  = 32
	frameCost = 56
	planTake  = 4096 // so many at a time
)

// findChunks collects the ranges that symbols and CFI name.
func (im *Image) findChunks(ctx context.Context) error {
	if im.Go != nil && im.Go.Unsupported == nil {
		im.findGoChunks()
		return nil
	}
	if err := im.Object.Take(uint64(im.fdes)*frameCost, "a list of so many FDEs"); err != nil {
		return err
	}
	var frames []frame
	var wg sync.WaitGroup
	wg.Go(func() { frames = im.findFrames() })
	named, err := im.findSymbols()
	if err == nil {
		im.chunksOf(named)
	}
	wg.Wait()
	if err != nil {
		return err
	}
	if err := im.addFrames(frames); err != nil {
		return err
	}
	im.extendFrames()
	if err := im.findMore(ctx); err != nil {
		return err
	}
	im.settleEnds()
	for i := range im.chunks {
		c := &im.chunks[i]
		c.owner = int32(i)
		c.linkage = im.isLinkage(c.start)
	}
	return nil
}

// leastNames is of how many names a core makes chunks at least.
const leastNames = 2048

// chunksOf makes the chunks that symbols name.
func (im *Image) chunksOf(named *symbols) {
	all := named.inPlace()
	chunks := hugepage.Make[chunk](len(all))
	im.names = hugepage.Make[string](len(all))
	n := max(1, min(runtime.GOMAXPROCS(0), len(all)/leastNames))
	parts := make([][]chunk, n)
	var wg sync.WaitGroup
	for i, to := 0, 0; i < n; i++ {
		from := to
		to = max(from, (i+1)*len(all)/n)
		for to > 0 && to < len(all) && all[to].addr == all[to-1].addr {
			to++
		}
		wg.Go(func() { parts[i] = im.chunksOfPart(chunks[from:from:to], named, all[from:to], uint32(from)) })
	}
	wg.Wait()
	im.chunks = chunks[:0]
	for _, part := range parts {
		im.chunks = append(im.chunks, part...)
	}
}

// chunksOfPart appends the chunks that some of the symbols name. Their names are put into those of the image, from first on.
func (im *Image) chunksOfPart(chunks []chunk, named *symbols, all []placed, first uint32) []chunk {
	named.eachAddress(all, func(list []*symbol) {
		c := chunk{start: list[0].addr, end: list[0].addr, names: names{first, uint32(len(list))}}
		c.cold = list[0].cold
		for _, s := range list {
			im.names[first] = s.name
			first++
			c.end = max(c.end, s.addr+s.size)
			c.thunk = c.thunk || s.thunk
			c.waits = c.waits || s.waits
			if c.hook == HookNone {
				c.hook = s.hook
			}
		}
		im.markTarget(c.start)
		chunks = append(chunks, c)
	})
	return chunks
}

// coldBase returns the name of the function whose cold part gcc and clang call so: name.cold, or name.cold.1.
func coldBase(name string) (string, bool) {
	n := len(name)
	for n > 0 && name[n-1] >= '0' && name[n-1] <= '9' {
		n--
	}
	if n > 0 && n < len(name) && name[n-1] == '.' {
		name = name[:n-1]
	}
	return strings.CutSuffix(name, ".cold")
}

// frame is what an FDE says about a range of code.
type frame struct {
	start, end uint64
	inner      bool // the stack frame isn't fresh at its start
}

// findFrames reads all FDEs of code, sorted by their start, and notes the tables of landing pads that they name.
func (im *Image) findFrames() []frame {
	if im.cfi == nil {
		return nil
	}
	frames := hugepage.Make[frame](im.fdes)[:0]
	im.cfi.VisitFDEs(func(f *cfi.FDE) bool {
		if f.LSDA != 0 {
			im.pads = append(im.pads, padTable{f.Start, f.LSDA})
		}
		t := im.textAt(f.Start)
		im.markTarget(f.Start)
		if t == nil || f.End > t.end || f.End <= f.Start || im.isLinkage(f.Start) {
			return true
		}
		inner := false
		if reg, off, ok := f.InitialCFA(); ok {
			inner = !f.CIE.SignalFrame && (reg != im.processor.sp || off != im.processor.fresh)
		}
		frames = append(hugepage.Grow(frames, 1), frame{f.Start, f.End, inner})
		return true
	})
	byStart := func(a, b frame) int { return cmp.Compare(a.start, b.start) }
	if !slices.IsSortedFunc(frames, byStart) {
		slices.SortStableFunc(frames, byStart)
	}
	return frames
}

// addFrames adds the ranges that only CFI knows and notes what CFI says about the others. An FDE that begins inside a
// symbol's range is that function's: hand-written assembly cuts FDEs as it likes.
func (im *Image) addFrames(frames []frame) error {
	named := im.chunks
	var extra []chunk
	k := 0
	for _, f := range frames {
		for k < len(named) && named[k].start < f.start {
			k++
		}
		switch {
		case k < len(named) && named[k].start == f.start:
			c := &named[k]
			c.inner = f.inner
			if c.end == c.start {
				c.end, c.framed = f.end, true
			}
		case k > 0 && f.start < named[k-1].end:
		case len(extra) > 0 && extra[len(extra)-1].start == f.start:
		default:
			extra = append(extra, chunk{start: f.start, end: f.end, inner: f.inner, framed: true})
		}
	}
	if len(extra) > 0 {
		if err := im.Object.Take(uint64(len(extra))*planCost, "a plan of so many functions"); err != nil {
			return err
		}
		im.chunks = append(im.chunks, extra...)
		slices.SortStableFunc(im.chunks, func(a, b chunk) int { return cmp.Compare(a.start, b.start) })
	}
	return nil
}

// settleEnds gives symbols without a size the space up to the next one, and finds overlaps.
func (im *Image) settleEnds() {
	n := len(im.chunks)
	reach := uint64(0) // the highest end so far
	reachOf := -1
	for i := range im.chunks {
		c := &im.chunks[i]
		t := im.textAt(c.start)
		limit := t.end
		if i+1 < n && im.chunks[i+1].start < limit {
			limit = im.chunks[i+1].start
		}
		if c.end == c.start {
			c.end, c.guessed = limit, true
		}
		c.end = min(c.end, t.end)
		if c.start < reach {
			c.overlap = true
			im.chunks[reachOf].overlap = true
		}
		if c.end > reach {
			reach, reachOf = c.end, i
		}
	}
}
