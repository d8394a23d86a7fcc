package discover

import (
	"cmp"
	"context"
	"math/bits"
	"runtime"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
)

// Evidence is what a function was found by.
type Evidence uint8

// The evidence, the strongest first.
const (
	// Called: a direct call leads there.
	Called Evidence = iota + 1
	// Pointed: data, a relocation or an instruction has its address, and what precedes it ends there.
	Pointed
	// Behind: it stands where a function ends, and its code is that of a whole one.
	Behind
)

// String returns what JSON has of it.
func (e Evidence) String() string {
	switch e {
	case Called:
		return "call"
	case Pointed:
		return "pointer"
	case Behind:
		return "shape"
	}
	return ""
}

// Text is a run of executable bytes, from a link address on.
type Text struct {
	Start uint64
	Data  []byte
}

func (t *Text) end() uint64 { return t.Start + uint64(len(t.Data)) }

// Range is a range of link addresses.
type Range struct{ Start, End uint64 }

// Function is a range of code that was found.
type Function struct {
	Range
	Evidence Evidence
	// Part says that it is no function but a part of one: jumps lead to it, and it is no whole one.
	Part bool
}

// Input is what is known of an image.
type Input struct {
	Texts []Text // sorted, without overlaps
	// Known are the functions that are known, sorted by their starts, and may overlap. One whose end isn't known ends where it starts.
	Known []Range
	// Skip are ranges in which nothing is looked for, sorted, without overlaps.
	Skip []Range
	// Fixed says that the image isn't relocated, so that numbers in instructions may be addresses.
	Fixed bool
	// Pointers calls visit with addresses that data holds, in any order and on several goroutines.
	Pointers func(visit func(addr uint64)) error
	// Read returns n bytes of the image's data, fewer at its end.
	Read func(addr uint64, n uint64) []byte
}

// shard is how much text is looked at in one piece, in bytes. The shards are the same on every machine, and so are the functions.
const shard = 1 << 20

// highest is what addresses are below: no program's code is beyond.
const highest = 1 << 62

// worth is how many bytes of code that nobody knows make it worth looking.
const worth = 256

// state is a search.
type state struct {
	*Input
	texts    []*marks
	gaps     []Range
	switches [][]site // of each shard
	sites    []site   // all, by address
	bases    []uint64 // where tables of jumps begin
	dense    bool     // functions stand one behind the other, without padding
}

// Find finds functions in what is between those that are known. Work and memory are bounded by the size of the text: each byte is
// decoded some times, and has five bits. The result is sorted and its ranges don't overlap one another nor those that are known.
func Find(ctx context.Context, in *Input) ([]Function, error) {
	for i := range in.Texts {
		if t := &in.Texts[i]; t.Start >= highest || t.end() >= highest {
			return nil, nil
		}
	}
	s := &state{Input: in}
	s.findGaps()
	if s.unknown() < worth {
		return nil, nil
	}
	for i := range in.Texts {
		s.texts = append(s.texts, newMarks(&in.Texts[i]))
	}
	shards := s.shards()
	s.switches = make([][]site, len(shards))
	s.spread(ctx, shards, s.gather)
	s.findTables()
	if in.Pointers != nil {
		if err := in.Pointers(s.point); err != nil {
			return nil, err
		}
	}
	s.dense = s.isDense()
	pieces := s.pieces()
	found := make([][]segment, len(pieces))
	s.spread(ctx, pieces, func(i int, r Range) { found[i] = s.divide(r) })
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.settle(slices.Concat(found...)), nil
}

// spread does work for each of the ranges, on all cores.
func (s *state) spread(ctx context.Context, list []Range, work func(i int, r Range)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(list)) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(list) {
					return
				}
				work(i, list[i])
			}
		})
	}
	wg.Wait()
}

// findGaps finds what no known function has and isn't to be left out.
func (s *state) findGaps() {
	taken := slices.Concat(s.Known, s.Skip)
	slices.SortFunc(taken, func(a, b Range) int { return cmp.Compare(a.Start, b.Start) })
	k, reach := 0, uint64(0)
	for i := range s.Texts {
		t := &s.Texts[i]
		at := min(max(t.Start, reach), t.end())
		for ; k < len(taken) && taken[k].Start < t.end(); k++ {
			if taken[k].Start > at {
				s.gaps = append(s.gaps, Range{at, taken[k].Start})
			}
			reach = max(reach, taken[k].End)
			at = max(at, min(taken[k].End, t.end()))
			if taken[k].End <= taken[k].Start && taken[k].Start >= at && taken[k].Start < t.end() {
				at = taken[k].Start
			}
		}
		if at < t.end() {
			s.gaps = append(s.gaps, Range{at, t.end()})
		}
	}
}

// unknown counts the bytes of the gaps that aren't padding.
func (s *state) unknown() (n uint64) {
	for _, g := range s.gaps {
		t := s.text(g.Start)
		for _, b := range t.Data[g.Start-t.Start : g.End-t.Start] {
			switch b {
			case 0x00, 0x90, 0xCC, 0x66, 0x0F, 0x1F, 0x2E, 0x40, 0x44, 0x80, 0x84: // all that nops are made of
			default:
				n++
			}
		}
	}
	return n
}

// text returns the text that holds addr, nil if none does.
func (s *state) text(addr uint64) *Text {
	i := sort.Search(len(s.Texts), func(i int) bool { return s.Texts[i].end() > addr })
	if i == len(s.Texts) || addr < s.Texts[i].Start {
		return nil
	}
	return &s.Texts[i]
}

// marks returns the marks of the text that holds addr.
func (s *state) marks(addr uint64) *marks {
	if len(s.texts) == 1 { // most often
		if m := s.texts[0]; addr-m.Start < uint64(len(m.Data)) {
			return m
		}
		return nil
	}
	i := sort.Search(len(s.texts), func(i int) bool { return s.texts[i].end() > addr })
	if i == len(s.texts) || addr < s.texts[i].Start {
		return nil
	}
	return s.texts[i]
}

// shards divides all texts.
func (s *state) shards() (list []Range) {
	for i := range s.Texts {
		t := &s.Texts[i]
		for at := t.Start; at < t.end(); at += shard {
			list = append(list, Range{at, min(at+shard, t.end())})
		}
	}
	return list
}

// pieces divides the gaps, at functions that are called.
func (s *state) pieces() (list []Range) {
	for _, g := range s.gaps {
		m := s.marks(g.Start)
		at := g.Start
		for g.End-at > shard {
			cut := (at + shard + 15) &^ 15
			for cut < g.End && !m.called.has(cut-m.Start) {
				cut += 16
			}
			if cut >= g.End {
				break
			}
			list = append(list, Range{at, cut})
			at = cut
		}
		list = append(list, Range{at, g.End})
	}
	return list
}

// inKnown says whether addr is behind the start of a function that is known, and before its end.
func (s *state) inKnown(addr uint64) bool {
	i := sort.Search(len(s.Known), func(i int) bool { return s.Known[i].Start >= addr })
	const overlaps = 4 // are looked at
	for k := i - 1; k >= max(0, i-overlaps); k-- {
		if addr < s.Known[k].End {
			return true
		}
	}
	return false
}

// isDense says whether functions stand where the one before ends, as compilers place them when they are to save room: most that are
// called aren't aligned.
func (s *state) isDense() bool {
	aligned, all := 0, 0
	for _, g := range s.gaps {
		m := s.marks(g.Start)
		for i := (g.Start - m.Start) / 32; i < (g.End-m.Start)/32; i++ {
			if word := atomic.LoadUint32(&m.called[i]); word != 0 {
				all += bits.OnesCount32(word)
				// Texts begin at multiples of 16 as a rule; those that don't have no functions that are aligned.
				aligned += bits.OnesCount32(word & 0x10001)
			}
		}
	}
	return all > 2*aligned
}
