package reel

import "math/bits"

// histogram counts durations in log-linear buckets: each power of two is cut
// into histogramSteps equal parts, and values below histogramSteps have a
// bucket each. A bucket's middle is off by at most 1/128 of any value in it, so
// percentiles are right to 0.8 %.
type histogram struct {
	// rows has one row for each power of two, made when it is first hit:
	// most functions fill a handful.
	rows [65 - histogramBits]*[histogramSteps]uint64
	// hit has a bit for each row that has values.
	hit uint64
	n   uint64 // values
}

const (
	histogramBits  = 6
	histogramSteps = 1 << histogramBits
)

func (h *histogram) add(v uint64) {
	row := rowOf(v)
	r := h.rows[row]
	if r == nil {
		r = new([histogramSteps]uint64)
		h.rows[row] = r
	}
	h.hit |= 1 << row
	h.n++
	// Above row 0 the leading one is implied: it is bit 6 of the shifted value.
	r[v>>max(row-1, 0)%histogramSteps]++
}

func rowOf(v uint64) int { return max(bits.Len64(v), histogramBits) - histogramBits }

func (h *histogram) merge(o *histogram) {
	for i, row := range o.hits {
		if h.rows[i] == nil {
			h.rows[i] = new([histogramSteps]uint64)
		}
		for j, n := range row {
			h.rows[i][j] += n
		}
	}
	h.hit |= o.hit
	h.n += o.n
}

// clear makes it one of no values, and keeps its memory.
func (h *histogram) clear() {
	for _, row := range h.hits {
		clear(row[:])
	}
	h.hit, h.n = 0, 0
}

// hits calls yield with the rows that have values. It is an iter.Seq2.
func (h *histogram) hits(yield func(i int, row *[histogramSteps]uint64) bool) {
	for left := h.hit; left != 0; left &= left - 1 {
		if i := bits.TrailingZeros64(left); !yield(i, h.rows[i]) {
			return
		}
	}
}

// percentile is the middle of the bucket of the value that at least percent of
// 100 values do not exceed (nearest rank), or 0 if there are none.
func (h *histogram) percentile(percent uint64) uint64 {
	hi, lo := bits.Mul64(h.total(), percent)
	rank, rest := bits.Div64(hi, lo, 100)
	if rest > 0 {
		rank++
	}
	seen := uint64(0)
	for i, row := range h.hits {
		for j, n := range row {
			seen += n
			if n > 0 && seen >= rank {
				return bucketMiddle(i, uint64(j))
			}
		}
	}
	return 0
}

// total is how many values were added.
func (h *histogram) total() uint64 { return h.n }

func bucketMiddle(row int, step uint64) uint64 {
	if row == 0 {
		return step
	}
	width := uint64(1) << (row - 1)
	return (histogramSteps+step)*width + width/2
}
