package timeline

import (
	"cmp"
	"math"
	"slices"

	"github.com/callreel/callreel/reel"
)

// density says how many events there are in a stretch of the recording, of all
// threads, to within the chunks at its ends.
type density struct {
	starts, ends []chunkEdge // in order of time
	end          uint64      // of the recording
	growing      bool
	atOnce       uint64
}

// chunkEdge is where a chunk starts or ends, and how many events are in the chunks
// that do so up to there.
type chunkEdge struct{ at, events uint64 }

const (
	// eventsAtOnce is how many events may be decoded for a view: levels are kept
	// where it would be more. It is what two processors can do in some 30 ms.
	eventsAtOnce = 2_800_000
	// screenWidth is how many grains a screen has at least whose pixels are rounded
	// to one, if it is 1,800 pixels wide: that by √2.
	screenWidth = 1273
)

func newDensity(f *reel.File, c *clock, end uint64, growing bool, atOnce uint64) *density {
	d := &density{end: max(1, end), growing: growing, atOnce: atOnce}
	for _, th := range f.Threads() {
		from, to := uint64(0), uint64(0)
		for _, k := range f.Chunks(th.Key) {
			n := uint64(min(k.Events, k.Bytes))
			if c.untimed {
				from, to = to, to+n
			} else if k.First != 0 {
				from = c.rel(k.First)
				to = max(from, c.rel(k.Last))
			}
			d.starts = append(d.starts, chunkEdge{from, n})
			d.ends = append(d.ends, chunkEdge{to, n})
		}
	}
	for _, list := range [][]chunkEdge{d.starts, d.ends} {
		slices.SortFunc(list, func(a, b chunkEdge) int { return cmp.Compare(a.at, b.at) })
		for i := 1; i < len(list); i++ {
			list[i].events += list[i-1].events
		}
	}
	return d
}

// before is how many events are in chunks whose edge is before a time.
func before(list []chunkEdge, at uint64) uint64 {
	i, _ := slices.BinarySearchFunc(list, at, func(e chunkEdge, at uint64) int { return cmp.Compare(e.at, at) })
	if i == 0 {
		return 0
	}
	return list[i-1].events
}

// within is how many events have to be decoded for a stretch of a length around
// a time, or at the recording's end.
func (d *density) within(at, length uint64) uint64 {
	from := min(at-min(at, length/2), d.end-min(d.end, length))
	to := from + min(length, math.MaxUint64-from)
	n := before(d.starts, to) - min(before(d.starts, to), before(d.ends, from))
	if d.growing && length > d.end { // as much again is still to come
		return uint64(float64(n) * float64(length) / float64(d.end))
	}
	return n
}

// finest is the finest grain at which a screen around a time takes in more events
// than can be decoded at once, if its pixels are a bit finer still: there must be
// a level of it.
func (d *density) finest(at uint64) uint {
	// The number grows with the length.
	low, high := uint(0), uint(maxGrain)
	for low < high {
		mid := (low + high + 1) / 2
		if d.within(at, screen(mid)) <= d.atOnce {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

// screen is more ticks than a screen shows whose pixels are rounded to a finer
// grain.
func screen(grain uint) uint64 {
	if grain > 63-11 {
		return math.MaxUint64
	}
	return screenWidth << grain
}
