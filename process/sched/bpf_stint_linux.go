package sched

import "encoding/binary"

// The kernel counts what threads run by its own clock, which it doesn't read at each switch: where a wake-up preempts, who is
// woken is charged from the wake-up on, some microseconds before the switch. So each record of a switch also has up to when the
// kernel has counted. The difference of that to the time of the record is the distance of the two clocks, and how late the
// record is. The distance is the least of these differences: it changes slowly only, but for steps up where interrupts or the
// machine's host took time that the kernel doesn't count.

const (
	// latest is how late a record can be, in nanoseconds. A wake-up may have to wait for a system call to end; but each tick
	// of the kernel's, 10 ms at most, reads its clock anew.
	latest = 10_000_000
	// longest is how much of a stint isn't counted at most. A host may let a virtual processor stand still for that long.
	longest = 1_000_000_000
	// enough later records are not all late by chance: what they show of the distance is so.
	enough = 4
	// step is from where on, with fewer, a distance that grows is time that isn't counted, and not a record that is late.
	step = 5_000
	// turning is by which part at most NTP turns one clock against the other: 1 in 1<<turning.
	turning = 13
)

// count is what a record of a switch says of the kernel's clock.
type count struct {
	known  bool
	after  uint8  // how many records follow by which least is known, at most enough; enough if one isn't late
	sooner int32  // by how much less its difference is for who comes than for who leaves; below 0 if that isn't known
	time   uint64 // of the record
	wide   int64  // its difference, without an end
	least  int64  // the distance of the clocks then
}

// counted is the record's difference between its time and up to when the kernel has counted: for who leaves, or if nobody does
// for who comes. Sooner is by how much less it is for who comes, below 0 if that isn't known.
func counted(b []byte) (difference uint32, sooner int32, ok bool) {
	if binary.LittleEndian.Uint32(b[recFlags:])&(flagWoken|flagExec) != 0 {
		return 0, 0, false
	}
	if sooner = int32(binary.LittleEndian.Uint64(b[recNext:]) >> (2 * nextBits)); sooner == farthest {
		sooner = -1
	}
	return uint32(binary.LittleEndian.Uint64(b)) - binary.LittleEndian.Uint32(b[recCount:]), sooner, true
}

const (
	// atOnce is of how many records it is found out at once how late they are: as many as stay in a processor's cache.
	atOnce = 1024
	// ahead is how many later records, if there are, tell of the distance at each.
	ahead = 256
)

// lateBy is how late a record is for who leaves, and nextBy for who comes, in nanoseconds: not as late as before the last boundary
// that was told, when less was known.
func (r *bpfRing) lateBy(c *count) int64 { return r.notBefore(c, lateness(c.wide-c.least)) }

func (r *bpfRing) nextBy(c *count) int64 {
	return r.notBefore(c, lateness(c.wide-int64(c.sooner)-c.least))
}

func (r *bpfRing) notBefore(c *count, ns int64) int64 {
	if c.time < r.edge {
		return 0
	}
	return int64(min(uint64(ns), c.time-r.edge))
}

// at is what the record at a place says, which is not before the tail.
func (r *bpfRing) at(place uint64) *count {
	if end := r.first + uint64(len(r.counted)); place < r.first || place >= end || end != r.head && end-place < ahead {
		r.measure(place)
	}
	return &r.counted[place-r.first]
}

// measure finds out how late records are, from the one at a place on.
func (r *bpfRing) measure(place uint64) {
	n := int(min(r.head-place, atOnce))
	if r.counted == nil {
		r.counted = make([]count, atOnce)
	}
	r.counted, r.first = r.counted[:n], place
	if !r.counts {
		clear(r.counted)
		return
	}
	// Forwards: differences without an end. They are near one another.
	wide := r.switched.wide
	for k := range r.counted {
		c := &r.counted[k]
		*c = count{}
		b := r.record(r.first + uint64(k))
		if b == nil {
			continue // not reached
		}
		raw, sooner, ok := counted(b)
		if !ok {
			continue
		}
		wide += int64(int32(raw - uint32(wide)))
		*c = count{known: true, sooner: sooner, time: binary.LittleEndian.Uint64(b), wide: wide, least: wide - int64(max(sooner, 0))}
		if leftFor(binary.LittleEndian.Uint32(b[recFlags:])) != Preempted {
			c.after = enough // the kernel has just read its clock
		}
	}
	// Backwards: the distance cannot be more than what follows shows, but for what NTP turns.
	var last *count
	for k := n - 1; k >= 0; k-- {
		c := &r.counted[k]
		if !c.known {
			continue
		}
		if last != nil {
			c.least = min(c.least, last.least+turned(c.time, last.time))
			c.after = max(c.after, min(last.after+1, enough))
		}
		last = c
	}
	// Forwards: nor is it much more than before, but for what isn't counted.
	last = &r.switched
	for k := range r.counted {
		c := &r.counted[k]
		if !c.known {
			continue
		}
		if before := last.least + turned(last.time, c.time); last.known && c.after < enough && c.least-before < step {
			c.least = min(c.least, before)
		}
		last = c
	}
}

// lateness is how late a record is, or 0 if that cannot be.
func lateness(ns int64) int64 {
	if ns < 0 || ns > latest {
		return 0
	}
	return ns
}

// turned is by how much NTP can have turned the clocks against one another between two times.
func turned(from, to uint64) int64 {
	if to < from {
		return 0
	}
	return int64((to - from) >> turning)
}

// stint is a thread on a processor, from the switch that brings it.
type stint struct {
	known  bool
	tid    int32
	lost   uint32 // records, up to then
	time   uint64 // measured
	wide   int64  // the record's difference, for it
	lateBy int64
	later  int64 // by how much its beginning was moved beyond that
}

// length is how long a stint is from its boundary to that of its end.
func (s *stint) length(c *count, lateBy int64) int64 { return int64(c.time-s.time) + s.lateBy - lateBy }

// excess is by how much a stint, which ends with the record b, that is late by lateBy, is longer than the kernel counted. It is
// false where that isn't known, or cannot be.
func (s *stint) excess(b []byte, c *count, lateBy int64) (ns int64, ok bool) {
	if !s.known || !c.known || c.time < s.time ||
		s.tid != int32(binary.LittleEndian.Uint32(b[recPrev+4:])) || s.lost != binary.LittleEndian.Uint32(b[recCommit+4:]) {
		return 0, false
	}
	ns = c.wide - s.wide + s.lateBy - lateBy
	if most := turned(s.time, c.time); ns >= -most && ns <= most {
		return 0, true // the kernel's nanosecond is as much longer or shorter
	}
	// A clock that stands still, or isn't the one that is meant, takes nothing away.
	if ns < -latest || ns > 0 && ns >= min(s.length(c, lateBy), longest) {
		return 0, false
	}
	return ns, true
}

// comes begins the stint of who comes by the record b at a place, with the ID tid. It says by how much its coming is to be
// moved, and how long the stint is, if its end is in the ring already.
//
// Time that wasn't counted within a stint is told as if the thread hadn't been on the processor then: where in the stint that
// was isn't known. One that goes to wait does that in a certain call, so that the beginning is moved; else the end is.
func (r *bpfRing) comes(b []byte, place uint64, tid int32) (shift, length int64) {
	c := r.at(place)
	if !c.known || c.sooner < 0 {
		return 0, 0
	}
	r.stint = stint{known: true, tid: tid, lost: binary.LittleEndian.Uint32(b[recCommit+4:]), time: c.time, wide: c.wide - int64(c.sooner), lateBy: r.nextBy(c)}
	s := &r.stint
	// Each record between two switches is looked at once here, or twice.
	for p := place + 1; p != r.head; p++ {
		if p == r.first+uint64(len(r.counted)) {
			if place == r.first {
				break // too far away
			}
			r.measure(place)
		}
		c := &r.counted[p-r.first]
		if !c.known {
			continue
		}
		b := r.record(p)
		lateBy := r.lateBy(c)
		ns, ok := s.excess(b, c, lateBy)
		if !ok {
			break
		}
		if ns > 0 && leftFor(binary.LittleEndian.Uint32(b[recFlags:])) != Preempted {
			s.later = ns
		}
		length = s.length(c, lateBy) - s.later
		break
	}
	return s.later - s.lateBy, length
}

// leaves ends the stint of who leaves by the record b at a place: by how much its leaving is to be moved, and by how much the
// stint is still longer then than the kernel counted.
func (r *bpfRing) leaves(b []byte, place uint64, kind Kind) (shift, excess int64) {
	c := r.at(place)
	lateBy := r.lateBy(c)
	ns, ok := r.stint.excess(b, c, lateBy)
	if !ok {
		return -lateBy, 0
	}
	ns -= r.stint.later
	if ns > 0 && kind == Preempted {
		return -lateBy - ns, 0
	}
	return -lateBy, ns
}

// took notes the record of a switch at a place, which was taken.
func (r *bpfRing) took(place uint64) {
	if c := r.at(place); c.known {
		r.edge = max(r.edge, c.time-uint64(r.lateBy(c)))
		if c.sooner >= 0 {
			r.edge = max(r.edge, c.time-uint64(r.nextBy(c)))
		}
		r.switched = *c
	}
}
