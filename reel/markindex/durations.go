package markindex

import "math/bits"

// durations counts durations in buckets: each power of two is cut into 64 parts, so percentiles are right to 0.8 %.
type durations struct {
	rows  [64]*[durationSteps]uint32
	count uint64
}

const (
	durationBits  = 6
	durationSteps = 1 << durationBits
)

// bucket is the row and the place of a duration.
func bucket(v uint64) (row int, step uint64) {
	row = max(bits.Len64(v), durationBits) - durationBits
	return row, v >> max(row-1, 0) % durationSteps
}

func (d *durations) add(v uint64) {
	row, step := bucket(v)
	if d.rows[row] == nil {
		d.rows[row] = new([durationSteps]uint32)
	}
	d.rows[row][step]++
	d.count++
}

// percentile is the middle of the bucket of the duration that so many of 100 are not longer than, 0 if there are none.
func (d *durations) percentile(percent uint64) uint64 {
	rank := (d.count*percent + 99) / 100
	seen := uint64(0)
	for i, r := range d.rows {
		if r == nil {
			continue
		}
		for k, n := range r {
			if seen += uint64(n); n > 0 && seen >= rank {
				if i == 0 {
					return uint64(k)
				}
				width := uint64(1) << (i - 1)
				return (durationSteps+uint64(k))*width + width/2
			}
		}
	}
	return 0
}
