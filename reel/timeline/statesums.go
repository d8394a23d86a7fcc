package timeline

import (
	"math/bits"

	"github.com/callreel/callreel/reel"
)

// stateSums is what a thread did in a stretch of time, in ticks. What is missing to the stretch isn't known.
type stateSums struct {
	running, ready, blocked uint64
	uninterruptible         uint64 // of blocked
	minor, major            uint32 // page faults
}

func (s *stateSums) add(o *stateSums) {
	s.running += o.running
	s.ready += o.ready
	s.blocked += o.blocked
	s.uninterruptible += o.uninterruptible
	s.minor += o.minor
	s.major += o.major
}

// spend adds so many ticks of an interval.
func (s *stateSums) spend(x *stateInterval, ticks uint64) {
	switch x.state {
	case reel.StateRunning:
		s.running += ticks
	case reel.StateReady:
		s.ready += ticks
	case reel.StateBlocked:
		s.blocked += ticks
		if x.uninterruptible {
			s.uninterruptible += ticks
		}
	}
}

func (s *stateSums) count(f *stateFault) {
	if f.major {
		s.major++
	} else {
		s.minor++
	}
}

// whole says whether all of so many ticks were in one state without a page fault, and were in that of o, too.
func (s *stateSums) whole(o *stateSums, ticks uint64) bool {
	return s.minor|s.major == 0 && (s.running == ticks && o.running > 0 || s.ready == ticks && o.ready > 0 ||
		s.uninterruptible == ticks && o.uninterruptible > 0 || s.blocked == ticks && s.uninterruptible == 0 && o.blocked > 0 && o.uninterruptible == 0)
}

// stateInterval is a reel.StateInterval in ticks from the recording's start.
type stateInterval struct {
	start, end      uint64
	state           reel.RunState
	uninterruptible bool
}

type stateFault struct {
	at    uint64
	major bool
}

// stateCells sums up states in cells of 1<<grain ticks, on a grid from the recording's start. Cells of a finer grain add up to those of a
// coarser one exactly.
type stateCells struct {
	grain uint
	first uint64 // number of the first cell
	cells []stateSums
}

// cellsOver makes the cells that a stretch lies in, end exclusive.
func cellsOver(start, end uint64, grain uint) stateCells {
	first := start >> grain
	return stateCells{grain: grain, first: first, cells: make([]stateSums, (end-1)>>grain-first+1)}
}

func (c *stateCells) end() uint64 { return (c.first + uint64(len(c.cells))) << c.grain }

// interval adds as much of an interval as lies in the cells.
func (c *stateCells) interval(x *stateInterval) {
	start, end := max(x.start, c.first<<c.grain), min(x.end, c.end())
	if start >= end || x.state == reel.StateUnknown {
		return
	}
	i, last := start>>c.grain-c.first, (end-1)>>c.grain-c.first
	if i == last {
		c.cells[i].spend(x, end-start)
		return
	}
	c.cells[i].spend(x, (i+c.first+1)<<c.grain-start)
	for i++; i < last; i++ {
		c.cells[i].spend(x, 1<<c.grain)
	}
	c.cells[last].spend(x, end-(last+c.first)<<c.grain)
}

func (c *stateCells) fault(f *stateFault) {
	if i := f.at>>c.grain - c.first; f.at>>c.grain >= c.first && i < uint64(len(c.cells)) {
		c.cells[i].count(f)
	}
}

// merge adds what cells of the same or a finer grain hold.
func (c *stateCells) merge(o *stateCells) {
	shift := c.grain - o.grain
	from, to := c.first<<shift, (c.first+uint64(len(c.cells)))<<shift
	for i := max(from, o.first); i < min(to, o.first+uint64(len(o.cells))); i++ {
		c.cells[i>>shift-c.first].add(&o.cells[i-o.first])
	}
}

// A segment of states has so many intervals, and levels of cells of which the finest has so many at most, each next one a fourth: 1.7 bytes
// an interval. A screen that is too fine for them has some 20 segments of a thread at most, whose intervals are decoded in 2 ms.
const (
	stateSegmentIntervals = 1 << 12
	stateSegmentCells     = 1 << 7
	stateLevelShift       = 2
)

// stateSegment is a stretch of a thread's states that is summed up.
type stateSegment struct {
	start, end uint64
	levels     []stateCells // the finest first
}

// newStateSegment sums up intervals that follow one another, and the page faults in them.
func newStateSegment(list []stateInterval, faults []stateFault) stateSegment {
	s := stateSegment{start: list[0].start, end: list[len(list)-1].end}
	if s.end == s.start { // all before the recording's start
		return s
	}
	grain := uint(max(0, bits.Len64((s.end-s.start-1)/(stateSegmentCells-1))))
	finest := cellsOver(s.start, s.end, grain)
	for i := range list {
		finest.interval(&list[i])
	}
	for i := range faults {
		finest.fault(&faults[i])
	}
	s.levels = append(s.levels, finest)
	for len(s.levels[len(s.levels)-1].cells) > 1 && grain+stateLevelShift < 64 {
		grain += stateLevelShift
		next := cellsOver(s.start, s.end, grain)
		next.merge(&s.levels[len(s.levels)-1])
		s.levels = append(s.levels, next)
	}
	return s
}

// level is the coarsest that is fine enough for a grain; nil if there is none.
func (s *stateSegment) level(grain uint) *stateCells {
	for i := len(s.levels) - 1; i >= 0; i-- {
		if s.levels[i].grain <= grain {
			return &s.levels[i]
		}
	}
	return nil
}
