package symbols

import (
	"encoding/binary"
	"math"
)

// A region is one stretch of code. Its blocks and its buckets follow one another
// in the tables. Regions are sorted and do not overlap.
type region struct {
	base    uint64 // link address
	size    uint64 // bytes, at most 2^32, so that 32 bits tell any place in it
	first   uint32 // its first block
	count   uint32 // of blocks
	buckets uint32 // its first bucket
	shift   uint8  // a bucket stands for 2^shift bytes
}

// maxRegion is the size of the largest region. Longer code is cut into several.
const maxRegion = math.MaxUint32 + 1

// append appends the region's record.
func (r *region) append(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(b, r.base)
	b = le.AppendUint64(b, r.size)
	b = le.AppendUint32(b, r.first)
	b = le.AppendUint32(b, r.count)
	b = le.AppendUint32(b, r.buckets)
	return append(b, r.shift, 0, 0, 0)
}

// decodeRegion reads record k of a section.
func decodeRegion(b []byte, k int) region {
	b = b[k*regionSize : (k+1)*regionSize]
	le := binary.LittleEndian
	return region{
		base: le.Uint64(b), size: le.Uint64(b[8:]),
		first: le.Uint32(b[16:]), count: le.Uint32(b[20:]), buckets: le.Uint32(b[24:]), shift: b[28],
	}
}

// bucketCount is the number of buckets of a region: one more than it has stretches
// of 2^shift bytes, for the end of the last.
func (r *region) bucketCount() uint64 {
	if r.shift > 32 {
		return 2
	}
	return (r.size+1<<r.shift-1)>>r.shift + 1
}

// blocksPerBucket was measured on a kernel: fewer cost more memory than the search
// among them costs time.
const blocksPerBucket = 4

// chooseShift sets the size of the buckets so that each has blocksPerBucket blocks
// on average.
func (r *region) chooseShift() {
	for r.shift = 4; r.shift < 32 && r.size>>r.shift > uint64(r.count)/blocksPerBucket; {
		r.shift++
	}
}
