package probe

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/callreel/callreel/object"
)

// chunk is one contiguous range of code that symbols or FDEs give: a function or a part of one.
type chunk struct {
	start, end uint64
	names      []string // best first; none for a range that only CFI knows
	hasFDE     bool
	cold       bool   // its name says that it is a part
	inner      bool   // CFI says that the stack frame isn't fresh at the start: a part
	overlap    bool   // another symbol's range overlaps it
	guessed    bool   // nothing says where it ends
	labels     uint32 // data holds an address inside it: 1
	linkage    bool
	assembly   bool // of a Go program, and not made by the Go compiler
	cancels    bool // see markCancellation
	zone       bool // what another function keeps below the stack pointer may be alive at its start

	owner int32 // index of the chunk that is the function's entry part; itself until joined

	sweep
}

// sweep is what the linear sweep of a chunk found.
type sweep struct {
	swept    uint64   // end of what was swept
	badAt    uint64   // address of bytes that aren't an instruction, 0 for none
	far      bool     // has far branches
	jumpsOut []uint64 // where direct jumps that leave the chunk go, sorted
	bases    []uint64 // RIP-relative addresses of data: possible jump table bases
	data     []uint64 // addresses of code that instructions read or write
	closed   bool     // the last instruction doesn't fall through
	redZone  bool     // it uses memory below the stack pointer
}

// coldName is what gcc and clang call the cold part of a function.
var coldName = regexp.MustCompile(`^(.*?)\.cold(\.\d+)?$`)

// findChunks collects the ranges that symbols and CFI name.
func (im *Image) findChunks() error {
	if im.Go != nil && im.Go.Unsupported == nil {
		im.findGoChunks()
		return nil
	}
	syms, err := im.Object.Symbols()
	if err != nil {
		return err
	}
	type sized struct {
		end   uint64
		names []candidate
	}
	byStart := map[uint64]*sized{}
	for i := range syms {
		s := &syms[i]
		if !s.Defined() || s.Kind == object.TLS || im.textAt(s.Addr) == nil {
			continue
		}
		if s.Kind == object.Object {
			im.textData = append(im.textData, s.Addr)
			continue
		}
		im.markTarget(s.Addr) // a label without a type may be an entry, too
		if !s.IsFunc() || s.Name == "" || im.isLinkage(s.Addr) {
			continue
		}
		e := byStart[s.Addr]
		if e == nil {
			e = &sized{}
			byStart[s.Addr] = e
		}
		e.end = max(e.end, s.Addr+s.Size)
		e.names = append(e.names, candidate{s.Name, s.Binding, s.Dynamic})
	}
	for start, e := range byStart {
		names := bestNames(e.names)
		cold := strings.Contains(names[0], ".cold") && coldName.MatchString(names[0])
		im.chunks = append(im.chunks, chunk{start: start, end: e.end, names: names, cold: cold})
	}
	slices.SortFunc(im.chunks, func(a, b chunk) int { return cmp.Compare(a.start, b.start) })
	im.addFDEs()
	im.settleEnds()
	for i := range im.chunks {
		c := &im.chunks[i]
		c.owner = int32(i)
		c.linkage = im.isLinkage(c.start)
	}
	return nil
}

type candidate struct {
	name    string
	binding object.Binding
	dynamic bool
}

// bestNames orders the names of one address: those that other images link to first, then global ones, then those
// with fewer leading underscores, then the shorter.
func bestNames(c []candidate) []string {
	rank := func(x candidate) int {
		r := strings.IndexFunc(x.name, func(r rune) bool { return r != '_' }) * 4
		if x.binding == object.Local {
			r += 2
		}
		if !x.dynamic {
			r++
		}
		return r
	}
	slices.SortFunc(c, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(len(a.name), len(b.name)), cmp.Compare(a.name, b.name))
	})
	var names []string
	for _, x := range c {
		if !slices.Contains(names, x.name) {
			names = append(names, x.name)
		}
	}
	return names
}

// addFDEs adds the ranges that only CFI knows and notes what CFI says about the others. An FDE that begins inside a
// symbol's range is that function's: hand-written assembly cuts FDEs as it likes.
func (im *Image) addFDEs() {
	if im.CFI == nil {
		return
	}
	fdes := im.CFI.FDEs()
	named := im.chunks
	var extra []chunk
	k := 0
	for i := range fdes {
		f := &fdes[i]
		t := im.textAt(f.Start)
		im.markTarget(f.Start)
		if t == nil || f.End > t.end || f.End <= f.Start || im.isLinkage(f.Start) {
			continue
		}
		inner := false
		if reg, off, ok := f.InitialCFA(); ok {
			inner = !f.CIE.SignalFrame && (reg != dwarfRSP || off != 8)
		}
		for k < len(named) && named[k].start < f.Start {
			k++
		}
		switch {
		case k < len(named) && named[k].start == f.Start:
			c := &named[k]
			c.hasFDE, c.inner = true, inner
			if c.end == c.start {
				c.end = f.End
			}
		case k > 0 && f.Start < named[k-1].end:
		case len(extra) > 0 && extra[len(extra)-1].start == f.Start:
		default:
			extra = append(extra, chunk{start: f.Start, end: f.End, hasFDE: true, inner: inner})
		}
	}
	im.chunks = append(im.chunks, extra...)
	slices.SortStableFunc(im.chunks, func(a, b chunk) int { return cmp.Compare(a.start, b.start) })
}

// dwarfRSP is the stack pointer's DWARF number (System V AMD64 ABI figure 3.36).
const dwarfRSP = 7

// settleEnds gives symbols without a size the room up to the next one, and finds overlaps.
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

// name is what the chunk is called, image+0x… when it has no symbol.
func (im *Image) name(c *chunk) string {
	if len(c.names) > 0 {
		return c.names[0]
	}
	return fmt.Sprintf("%s+%#x", im.Module, c.start)
}
