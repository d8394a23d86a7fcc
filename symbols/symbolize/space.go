package symbolize

import (
	"cmp"
	"container/heap"
	"slices"
	"sort"
)

// maxImages bounds the images of one capture. Large programs load some hundreds;
// the images of a whole system with all its kernel modules are some thousands.
const maxImages = 1 << 16

// A piece is a range of addresses that belongs to one image, or to two that contradict
// each other.
type piece struct {
	start, end uint64
	image      *Image
	rival      *Image // also claims the range; nil mostly
}

// space is the address space of a captured process: pieces, sorted and disjoint.
type space struct{ pieces []piece }

// find returns the piece that holds addr.
func (s *space) find(addr uint64) (piece, bool) {
	k := sort.Search(len(s.pieces), func(k int) bool { return s.pieces[k].start > addr }) - 1
	if k < 0 || addr >= s.pieces[k].end {
		return piece{}, false
	}
	return s.pieces[k], true
}

// put adds an image the way a loader does: what was there is replaced, since text
// may hold the maps of several processes, or of one at several times.
func (s *space) put(im *Image) {
	first := sort.Search(len(s.pieces), func(k int) bool { return s.pieces[k].end > im.Load })
	end := im.end()
	if im.Size == 0 && first < len(s.pieces) {
		// Of unknown size: up to the next one that starts behind it.
		next := first
		if s.pieces[next].start <= im.Load {
			next++
		}
		if next < len(s.pieces) {
			end = s.pieces[next].start
		}
	}
	last := first
	for last < len(s.pieces) && s.pieces[last].start < end {
		last++
	}
	fresh := make([]piece, 0, 3)
	if first < last && s.pieces[first].start < im.Load {
		left := s.pieces[first]
		left.end = im.Load
		fresh = append(fresh, left)
	}
	fresh = append(fresh, piece{start: im.Load, end: end, image: im})
	if first < last && s.pieces[last-1].end > end {
		right := s.pieces[last-1]
		right.start = end
		// The rest of an image whose size nobody knows is a guess that the new one refutes.
		if right.image.Size != 0 {
			fresh = append(fresh, right)
		}
	}
	s.pieces = slices.Replace(s.pieces, first, last, fresh...)
}

// newSpace lays out images that were captured at one time. Where two of them claim an
// address, neither gets it: there is no telling which was wrong.
func newSpace(images []*Image) space {
	sorted := slices.Clone(images)
	slices.SortStableFunc(sorted, func(a, b *Image) int { return cmp.Compare(a.Load, b.Load) })
	sorted = slices.CompactFunc(sorted, (*Image).same)
	var s space
	var open byEnd // the images over the place that is looked at
	for k, im := range sorted {
		s.close(&open, im.Load)
		claim := claim{im, im.end()}
		if im.Size == 0 {
			claim.end = nextLoad(sorted[k:])
		}
		if claim.end > im.Load {
			heap.Push(&open, claim)
		}
		at := ^uint64(0)
		if k+1 < len(sorted) {
			at = sorted[k+1].Load
		}
		s.cover(&open, im.Load, at)
	}
	return s
}

// nextLoad is the first load address above that of the first image.
func nextLoad(sorted []*Image) uint64 {
	k := sort.Search(len(sorted), func(k int) bool { return sorted[k].Load > sorted[0].Load })
	if k == len(sorted) {
		return ^uint64(0)
	}
	return sorted[k].Load
}

// close drops the claims that end at or before addr.
func (s *space) close(open *byEnd, addr uint64) {
	for open.Len() > 0 && (*open)[0].end <= addr {
		heap.Pop(open)
	}
}

// cover adds the pieces from one load address to the next.
func (s *space) cover(open *byEnd, from, to uint64) {
	for from < to && open.Len() > 0 {
		p := piece{start: from, end: min((*open)[0].end, to), image: (*open)[0].image}
		if open.Len() > 1 {
			p.rival = (*open)[1].image
		}
		if p.end > from {
			s.pieces = append(s.pieces, p)
		}
		from = p.end
		s.close(open, from)
	}
}

// A claim is an image and where it ends.
type claim struct {
	image *Image
	end   uint64
}

// byEnd is a heap of claims, the one that ends first on top.
type byEnd []claim

func (h byEnd) Len() int           { return len(h) }
func (h byEnd) Less(a, b int) bool { return h[a].end < h[b].end }
func (h byEnd) Swap(a, b int)      { h[a], h[b] = h[b], h[a] }
func (h *byEnd) Push(x any)        { *h = append(*h, x.(claim)) }
func (h *byEnd) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
