package symbols

import (
	"slices"
	"sort"

	"github.com/callreel/callreel/dwarf"
)

// A worker turns units into blocks, one after the other.
type worker struct {
	encoder
	symbols *symbolTable
	regions []region

	contents dwarf.Contents
	lines    lines
	files    numbering[sourceFile]
	fileOf   []uint32 // of the unit's files, 0 while unknown, else the number in files + 1
	overlay  overlay
	inlined  overlay
	pieces   []piece // of the unit's functions
	ranges   []piece // of the function's inlined calls
	scopes   []int32 // the open calls by depth, while reading a function
}

// cost is the memory that what w.contents becomes takes until the map is written: records of functions with their
// names, nodes of calls, pieces of rows.
func (w *worker) cost() uint64 {
	c := &w.contents
	return 256*uint64(len(c.Functions)) + 64*uint64(len(c.Inlines)) + 16*uint64(len(c.Rows)) + 64*uint64(len(c.Files))
}

// convert adds the unit in w.contents.
func (w *worker) convert(unit uint32) {
	c := &w.contents
	w.unit = unit
	w.fileOf = slices.Grow(w.fileOf[:0], len(c.Files))[:len(c.Files)]
	clear(w.fileOf)
	w.lines.load(c.Rows)
	w.pieces = w.pieces[:0]
	for k := range c.Functions {
		w.claim(int32(k), &c.Functions[k])
	}
	pieces := w.overlay.resolve(w.pieces)
	for k := range pieces {
		pieces[k].owner %= int32(len(c.Functions))
	}
	w.unclaimed(pieces)
	// All pieces of a function together: its calls are laid out once.
	byOwner := func(a, b piece) int { return int(a.owner) - int(b.owner) }
	if !slices.IsSortedFunc(pieces, byOwner) {
		slices.SortStableFunc(pieces, byOwner)
	}
	for first := 0; first < len(pieces); {
		end := first + 1
		for end < len(pieces) && pieces[end].owner == pieces[first].owner {
			end++
		}
		w.addFunction(&c.Functions[pieces[first].owner], pieces[first:end])
		first = end
	}
}

// claim adds the code of a function to w.pieces: its ranges, and those of inlined calls
// outside of them. DWARF 2 has no way to say that a function has a second part: GCC
// makes that a function of its own ("__second_sect_of_f") and leaves the calls inlined
// there with the first, which therefore win (by a higher number, the same modulo that
// of functions).
func (w *worker) claim(owner int32, f *dwarf.Function) {
	c := &w.contents
	low, high := ^uint64(0), uint64(0)
	for _, r := range span(c.Ranges, f.Ranges) {
		if r.Low < r.High {
			w.pieces = append(w.pieces, piece{r.Low, r.High, owner})
			low, high = min(low, r.Low), max(high, r.High)
		}
	}
	owner += int32(len(c.Functions))
	list := span(c.Inlines, f.Inlines)
	for k := range list {
		for _, r := range span(c.Ranges, list[k].Ranges) {
			if r.Low < r.High && (r.High <= low || r.Low >= high) {
				w.pieces = append(w.pieces, piece{r.Low, r.High, owner})
			}
		}
	}
}

// span returns a piece of one of the slices of Contents; empty if it lies outside.
func span[T any](s []T, at dwarf.Span) []T {
	if uint64(at.First)+uint64(at.Count) > uint64(len(s)) {
		return nil
	}
	return s[at.First : at.First+at.Count]
}

// addFunction adds the pieces of one function.
func (w *worker) addFunction(f *dwarf.Function, pieces []piece) {
	w.rank = rankFunction
	w.openCalls(f)
	segments := w.inlined.resolve(w.ranges)
	for _, p := range pieces {
		w.named(p.start, p.end, nameRef(f.Name), segments)
	}
}

// openCalls fills w.calls with the function's inlined calls, w.ranges with their
// ranges; the owner is the number of the call.
func (w *worker) openCalls(f *dwarf.Function) {
	c := &w.contents
	w.calls = append(w.calls[:0], call{})
	w.ranges, w.scopes = w.ranges[:0], append(w.scopes[:0], 0)
	list := span(c.Inlines, f.Inlines)
	w.encoder.inlines += uint64(len(list))
	for k := range list {
		in := &list[k]
		// A parent always stands before; one that is missing is passed over.
		depth := min(max(int(in.Depth), 1), len(w.scopes))
		w.scopes = w.scopes[:depth]
		parent := w.scopes[depth-1]
		number := int32(len(w.calls))
		n := call{name: nameRef(in.Name), parent: parent, depth: w.calls[parent].depth + 1, file: w.file(in.CallFile), line: in.CallLine}
		if n.line > 1<<maxNumberBits-1 {
			n.line = 0
		}
		if n.depth > maxDepth {
			n.parent, n.depth = 0, 1
		}
		w.calls = append(w.calls, n)
		w.scopes = append(w.scopes, number)
		for _, r := range span(c.Ranges, in.Ranges) {
			if r.Low < r.High {
				w.ranges = append(w.ranges, piece{r.Low, r.High, number})
			}
		}
	}
}

// file returns the number in w.files of one of the unit's files.
func (w *worker) file(k uint32) uint32 {
	if uint64(k) >= uint64(len(w.fileOf)) {
		return 0
	}
	if n := w.fileOf[k]; n != 0 {
		return n - 1
	}
	f := w.contents.Files[k]
	n := uint32(0)
	if f.Name != 0 {
		n = w.files.number(sourceFile(f))
	}
	w.fileOf[k] = n + 1
	return n
}

// named encodes code of one of DWARF's functions. A symbol there gives the name:
// it tells clones and parts apart that DWARF has one name for. One without a size
// that stands before the function does not reach into it.
func (w *worker) named(start, end uint64, name nameRef, segments []piece) {
	for r := nextRegion(w.regions, start); start < end && r < len(w.regions); r++ {
		low := max(start, w.regions[r].base)
		high := min(end, w.regions[r].base+w.regions[r].size)
		at := low
		for k := w.symbols.from(at); at < high && k < len(w.symbols.pieces); k++ {
			s := &w.symbols.pieces[k]
			if s.start >= high {
				break
			}
			if !s.sized && s.symbol < start {
				continue
			}
			if s.start > at {
				w.encode(at, s.start, start, name, 0, segments)
			}
			at = min(high, s.end)
			w.encode(max(s.start, low), at, s.symbol, s.name, w.origin(s), segments)
		}
		if at < high {
			w.encode(at, high, start, name, 0, segments)
		}
		if high >= end {
			break
		}
	}
}

// origin returns the number in w.files of the file that the symbol table names for
// a symbol, 0 for none.
func (w *worker) origin(s *symbolPiece) uint32 {
	if s.file == 0 {
		return 0
	}
	return w.files.number(sourceFile{Name: dwarf.String(s.file)})
}

// unclaimed encodes code that has rows and symbols but no function: assembly.
func (w *worker) unclaimed(pieces []piece) {
	w.rank = rankRows
	w.calls = append(w.calls[:0], call{})
	k, at := 0, uint64(0)
	for n := range w.lines.sequences {
		s := &w.lines.sequences[n]
		at = max(at, s.low)
		for at < s.high {
			for k < len(pieces) && pieces[k].end <= at {
				k++
			}
			if k < len(pieces) && pieces[k].start <= at {
				at = pieces[k].end
				continue
			}
			end := s.high
			if k < len(pieces) {
				end = min(end, pieces[k].start)
			}
			floor := uint64(0)
			if k > 0 {
				floor = pieces[k-1].end
			}
			w.bySymbol(at, end, floor)
			at = end
		}
	}
}

// bySymbol encodes what symbols name of a stretch without functions. The last function
// before ends at floor: a symbol without a size does not reach over that.
func (w *worker) bySymbol(start, end, floor uint64) {
	for k := w.symbols.from(start); k < len(w.symbols.pieces); k++ {
		s := &w.symbols.pieces[k]
		if s.start >= end {
			return
		}
		if !s.sized && s.symbol < floor {
			continue
		}
		w.encode(max(start, s.start), min(end, s.end), s.symbol, s.name, w.origin(s), nil)
	}
}

// encode makes the blocks of [start, end), all of it one function's.
func (w *worker) encode(start, end, function uint64, name nameRef, origin uint32, segments []piece) {
	if start >= end {
		return
	}
	w.calls[0].name = name
	w.begin(start, function, origin)
	cursor := w.lines.seek(start)
	k := sort.Search(len(segments), func(k int) bool { return segments[k].end > start })
	var file, line uint32
	rowUntil := start
	for at := start; at < end; {
		if at >= rowUntil {
			var row *dwarf.Row
			if row, rowUntil = cursor.next(at); row != nil {
				file, line = w.file(row.File), row.Line
			} else {
				file, line = 0, 0
			}
		}
		until := rowUntil
		scope := int32(0)
		if k < len(segments) {
			if segments[k].start <= at {
				scope = segments[k].owner
				until = min(until, segments[k].end)
			} else {
				until = min(until, segments[k].start)
			}
		}
		w.row(at, scope, file, line)
		at = until
		if k < len(segments) && segments[k].end <= at {
			k++
		}
	}
	w.finish(end)
}
