package plan

import (
	"cmp"
	"slices"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/hugepage"
)

// piece is a range of code and the chunk that it belongs to. Pieces don't overlap; where chunks do, a piece is of the
// one that starts last.
type piece struct {
	start, end uint64
	chunk      int32
}

// cutPieces makes the table that chunkAt searches.
func (im *Image) cutPieces() {
	var open []int // chunks that have begun; those on top started last
	pos := uint64(0)
	advance := func(to uint64) {
		for len(open) > 0 && pos < to {
			top := open[len(open)-1]
			end := im.chunks[top].end
			if end <= pos {
				open = open[:len(open)-1]
				continue
			}
			end = min(end, to)
			im.pieces = append(im.pieces, piece{pos, end, int32(top)})
			pos = end
		}
		pos = to
	}
	im.pieces = hugepage.Make[piece](len(im.chunks))[:0]
	for i := range im.chunks {
		advance(im.chunks[i].start)
		open = append(open, i)
	}
	advance(^uint64(0))
	im.indexPieces()
}

// indexStep is for how many bytes of code there is an entry of text.pieces.
const indexStep = 512

// indexPieces makes the tables by which pieceAfter finds most pieces at once.
func (im *Image) indexPieces() {
	k := uint32(0)
	for i := range im.texts {
		t := &im.texts[i]
		t.pieces = make([]uint32, (t.end-t.start)/indexStep+1)
		for j := range t.pieces {
			for int(k) < len(im.pieces) && im.pieces[k].end <= t.start+uint64(j)*indexStep {
				k++
			}
			t.pieces[j] = k
		}
	}
}

// pieceAfter returns the index of the first piece that ends behind addr; it may begin behind it, too.
func (im *Image) pieceAfter(addr uint64) int {
	lo, hi := 0, len(im.pieces)
	if t := im.textAt(addr); t != nil {
		j := (addr - t.start) / indexStep
		lo = int(t.pieces[j])
		if j+1 < uint64(len(t.pieces)) {
			hi = int(t.pieces[j+1])
		}
	}
	for lo < hi {
		if mid := (lo + hi) / 2; im.pieces[mid].end > addr {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// chunkAt returns the index of the chunk that holds addr, -1 when none does. Of chunks that overlap it is the one that
// starts last.
func (im *Image) chunkAt(addr uint64) int {
	if i := im.pieceAfter(addr); i < len(im.pieces) && im.pieces[i].start <= addr {
		return int(im.pieces[i].chunk)
	}
	return -1
}

// merged sorts ranges and joins those that touch, so that contains can search them.
func merged(ranges []object.Range) []object.Range {
	slices.SortFunc(ranges, func(a, b object.Range) int { return cmp.Compare(a.Start, b.Start) })
	var out []object.Range
	for _, r := range ranges {
		if n := len(out); n > 0 && r.Start <= out[n-1].End {
			out[n-1].End = max(out[n-1].End, r.End)
		} else if r.End > r.Start {
			out = append(out, r)
		}
	}
	return out
}

// contains says whether one of the merged ranges holds addr.
func contains(ranges []object.Range, addr uint64) bool {
	lo, hi := 0, len(ranges)
	for lo < hi {
		switch mid := (lo + hi) / 2; {
		case addr < ranges[mid].Start:
			hi = mid
		case addr >= ranges[mid].End:
			lo = mid + 1
		default:
			return true
		}
	}
	return false
}

// span64 is addresses from start up to, and without, end.
type span64 struct{ start, end uint64 }
