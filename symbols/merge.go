package symbols

import (
	"cmp"
	"slices"
)

// A placed block is a record, or a part of one, that has got its stretch of code.
type placed struct {
	start, end uint64
	record     *record
}

// merge puts the workers' blocks into the order of addresses and decides between
// those that overlap: functions win over rows alone, then the unit that comes first
// in the file. What symbols name besides is added.
func merge(workers []*worker, symbols *symbolTable) []placed {
	count := 0
	for _, w := range workers {
		count += len(w.records)
	}
	unsorted := make([]*record, 0, count)
	for k, w := range workers {
		for _, r := range w.records {
			r.worker = uint16(k)
		}
		unsorted = append(unsorted, w.records...)
	}
	keys := make([]keyed, 2*count)
	for k, r := range unsorted {
		keys[k] = keyed{r.start, uint32(k)}
	}
	list := make([]*record, count)
	for k, key := range sortKeyed(keys[:count], keys[count:]) {
		list[k] = unsorted[key.index]
	}
	return fillGaps(settle(list), workers[0], symbols)
}

// compareRecords orders records by who wins.
func compareRecords(a, b *record) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.unit, b.unit), cmp.Compare(a.start, b.start))
}

// settle resolves overlaps in a sorted list.
func settle(list []*record) []placed {
	out := make([]placed, 0, len(list))
	var o overlay
	var ranges []piece
	for first := 0; first < len(list); {
		reach := list[first].end
		end := first + 1
		for end < len(list) && list[end].start < reach {
			reach = max(reach, list[end].end)
			end++
		}
		if end == first+1 {
			out = append(out, placed{list[first].start, list[first].end, list[first]})
			first = end
			continue
		}
		group := list[first:end]
		slices.SortFunc(group, func(a, b *record) int { return compareRecords(b, a) })
		ranges = ranges[:0]
		for k, r := range group {
			ranges = append(ranges, piece{r.start, r.end, int32(k)})
		}
		for _, p := range o.resolve(ranges) {
			out = append(out, placed{p.start, p.end, group[p.owner]})
		}
		first = end
	}
	return out
}

// fillGaps adds blocks for what only symbols name. A symbol without a size whose
// own address belongs to a block does not reach beyond that.
func fillGaps(list []placed, w *worker, symbols *symbolTable) []placed {
	w.rank, w.unit = rankSymbol, 0
	var gaps []placed
	k := 0
	for n := range symbols.pieces {
		s := &symbols.pieces[n]
		for k < len(list) && list[k].end <= s.start {
			k++
		}
		for at, m := s.start, k; at < s.end; m++ {
			end := s.end
			if m < len(list) {
				end = min(end, max(list[m].start, at))
			}
			if at < end && (s.sized || at == s.symbol) {
				gaps = append(gaps, placed{at, end, w.symbolRecord(at, end, s)})
			}
			if m >= len(list) {
				break
			}
			at = max(at, list[m].end)
		}
	}
	if len(gaps) == 0 {
		return list
	}
	return interleave(list, gaps)
}

// interleave merges two sorted lists that do not overlap.
func interleave(a, b []placed) []placed {
	out := make([]placed, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0].start < b[0].start {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// symbolRecord makes a block without rows.
func (w *worker) symbolRecord(start, end uint64, s *symbolPiece) *record {
	w.calls = append(w.calls[:0], call{name: s.name})
	w.begin(start, s.symbol, w.origin(s))
	w.finish(end)
	r := w.records[len(w.records)-1]
	w.records = w.records[:len(w.records)-1]
	return r
}
