package symbols

import (
	"cmp"
	"slices"
)

// A piece is a half-open range of addresses that belongs to one of several owners.
type piece struct {
	start, end uint64
	owner      int32
}

// overlay lays ranges that may overlap over one another, so that each address
// belongs to the covering owner with the highest number. Its slices are used again.
type overlay struct {
	pieces []piece
	heap   []piece // the open ranges, the highest owner first
	keys   []keyed // for sorting, as copy is
	copy   []piece
}

// insertionLimit is how many pieces are sorted by insertion: shorter lists are faster
// so, and longer ones could take quadratic time.
const insertionLimit = 32

// sort sorts by start, then by owner. The pieces come by rising owners or nearly so.
func (o *overlay) sort(p []piece) {
	if len(p) <= insertionLimit {
		for i := 1; i < len(p); i++ {
			v := p[i]
			k := i
			for ; k > 0 && comparePieces(v, p[k-1]) < 0; k-- {
				p[k] = p[k-1]
			}
			p[k] = v
		}
		return
	}
	if slices.IsSortedFunc(p, comparePieces) {
		return
	}
	if !slices.IsSortedFunc(p, func(a, b piece) int { return int(a.owner) - int(b.owner) }) {
		slices.SortFunc(p, comparePieces)
		return
	}
	// Sorting by start alone keeps the owners of one start in order.
	o.keys = slices.Grow(o.keys[:0], 2*len(p))[:2*len(p)]
	o.copy = append(o.copy[:0], p...)
	for k := range p {
		o.keys[k] = keyed{p[k].start, uint32(k)}
	}
	for k, key := range sortKeyed(o.keys[:len(p)], o.keys[len(p):]) {
		p[k] = o.copy[key.index]
	}
}

func comparePieces(a, b piece) int {
	if a.start != b.start {
		return cmp.Compare(a.start, b.start)
	}
	return cmp.Compare(a.owner, b.owner)
}

// overlap says whether any two of the sorted pieces share an address.
func overlap(p []piece) bool {
	for i := 1; i < len(p); i++ {
		if p[i].start < p[i-1].end {
			return true
		}
	}
	return false
}

// resolve returns disjoint sorted pieces; neighbours of one owner are joined. The
// input is sorted in place and the result is valid until the next call. The time is
// n log n, whatever the ranges.
func (o *overlay) resolve(in []piece) []piece {
	o.sort(in)
	if !overlap(in) {
		return in
	}
	if o.nested(in) {
		return o.pieces
	}
	o.pieces, o.heap = o.pieces[:0], o.heap[:0]
	next := 0
	at := uint64(0)
	for next < len(in) || len(o.heap) > 0 {
		if len(o.heap) == 0 {
			at = in[next].start
		}
		for next < len(in) && in[next].start <= at {
			o.push(in[next])
			next++
		}
		top := o.heap[0]
		if top.end <= at {
			o.pop()
			continue
		}
		end := top.end
		if next < len(in) {
			end = min(end, in[next].start)
		}
		o.emit(piece{at, end, top.owner})
		at = end
	}
	return o.pieces
}

// nested is resolve for ranges of which any two are apart or one is inside of the
// other and has the higher number, as compilers make them nearly always. It gives up,
// and returns false, at the first that are not so.
func (o *overlay) nested(in []piece) bool {
	o.pieces = slices.Grow(o.pieces[:0], len(in))
	open := o.heap[:0] // each inside of the one before
	at := uint64(0)
	for k := range in {
		p := in[k]
		for len(open) > 0 && open[len(open)-1].end <= p.start {
			if top := open[len(open)-1]; top.end > at {
				o.emit(piece{at, top.end, top.owner})
				at = top.end
			}
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			top := open[len(open)-1]
			if p.end > top.end || p.owner < top.owner {
				o.heap = open
				return false
			}
			if p.start > at {
				o.emit(piece{at, p.start, top.owner})
			}
		}
		open = append(open, p)
		at = p.start
	}
	for k := len(open) - 1; k >= 0; k-- {
		if open[k].end > at {
			o.emit(piece{at, open[k].end, open[k].owner})
			at = open[k].end
		}
	}
	o.heap = open
	return true
}

// emit appends a piece, or lengthens the last one.
func (o *overlay) emit(p piece) {
	if n := len(o.pieces); n > 0 && o.pieces[n-1].owner == p.owner && o.pieces[n-1].end == p.start {
		o.pieces[n-1].end = p.end
		return
	}
	o.pieces = append(o.pieces, p)
}

// push and pop keep the heap: each entry's owner is at least that of the two below.
func (o *overlay) push(p piece) {
	h := append(o.heap, p)
	k := len(h) - 1
	for k > 0 && h[(k-1)/2].owner < p.owner {
		h[k] = h[(k-1)/2]
		k = (k - 1) / 2
	}
	h[k] = p
	o.heap = h
}

func (o *overlay) pop() {
	n := len(o.heap) - 1
	last := o.heap[n]
	h := o.heap[:n]
	o.heap = h
	if n == 0 {
		return
	}
	k := 0
	for {
		child := 2*k + 1
		if child >= n {
			break
		}
		if child+1 < n && h[child+1].owner > h[child].owner {
			child++
		}
		if h[child].owner <= last.owner {
			break
		}
		h[k] = h[child]
		k = child
	}
	h[k] = last
}
