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
	// step is from where on a distance that grows isn't one of records that are late by chance, but time that isn't counted.
	step = 5_000
	// turning is by which part at most NTP turns one clock against the other: 1 in 1<<turning.
	turning = 13
)

// count is what a record of a switch says of the kernel's clock.
type count struct {
	known  bool
	lateBy int32 // how late the record is for who leaves, or if nobody does for who comes; nanoseconds
	nextBy int32 // for who comes; below 0 if that isn't known
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

// distance is what is known of the two clocks of a processor.
type distance struct {
	known bool
	time  uint64 // of a record
	raw   uint32 // its difference, and
	wide  int64  // the same without an end
	least int64  // the distance then
}

// follow makes raw differences wide: they are near one another.
func (d *distance) follow(raw uint32) int64 { return d.wide + int64(int32(raw-d.raw)) }

// measure finds out how late the records from the tail on are.
func (r *bpfRing) measure() {
	n := int(r.head - r.tail)
	if cap(r.late) < n {
		r.late = make([]count, n)
		r.least = make([]int64, n)
	}
	r.late, r.least = r.late[:n], r.least[:n]
	r.first = r.tail
	if !r.counts {
		clear(r.late)
		return
	}
	// Forwards: differences without an end.
	at := r.distance
	for k := range r.late {
		b := r.record(r.first + uint64(k))
		r.late[k] = count{}
		if b == nil {
			continue // not reached
		}
		raw, sooner, ok := counted(b)
		if !ok {
			continue
		}
		at.wide, at.raw = at.follow(raw), raw
		r.late[k] = count{known: true, nextBy: sooner}
		r.least[k] = at.wide - int64(max(sooner, 0))
	}
	// Backwards: the distance cannot be more than what follows shows, but for what NTP turns.
	var last *int64
	var lastTime uint64
	for k := n - 1; k >= 0; k-- {
		if !r.late[k].known {
			continue
		}
		time := binary.LittleEndian.Uint64(r.record(r.first + uint64(k)))
		if last != nil {
			r.least[k] = min(r.least[k], *last+turned(time, lastTime))
		}
		last, lastTime = &r.least[k], time
	}
	// Forwards: nor is it much more than before, but for what isn't counted.
	at = r.distance
	for k := range r.late {
		if c := &r.late[k]; c.known {
			r.late[k] = at.late(r.record(r.first+uint64(k)), r.least[k], c.nextBy)
		}
	}
}

// late is how late a record is, where the distance is at most most.
func (d *distance) late(b []byte, most int64, sooner int32) count {
	raw, time := uint32(binary.LittleEndian.Uint64(b))-binary.LittleEndian.Uint32(b[recCount:]), binary.LittleEndian.Uint64(b)
	wide := d.follow(raw)
	least := most
	if before := d.least + turned(d.time, time); d.known && most-before < step {
		least = min(most, before)
	}
	*d = distance{known: true, time: time, raw: raw, wide: wide, least: least}
	c := count{known: true, lateBy: lateness(wide - least), nextBy: -1}
	if sooner >= 0 {
		c.nextBy = lateness(wide - int64(sooner) - least)
	}
	return c
}

// lateness is how late a record is, or 0 if that cannot be.
func lateness(ns int64) int32 {
	if ns < 0 || ns > latest {
		return 0
	}
	return int32(ns)
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
	raw    uint32 // the record's difference, for it
	lateBy int64
	later  int64 // by how much its beginning was moved beyond that
}

// excess is by how much a stint, which ends with the record b that is late by ns, is longer than the kernel counted. It is
// false where that isn't known, or cannot be.
func (s *stint) excess(b []byte, c count) (ns int64, ok bool) {
	if !s.known || !c.known || s.tid != int32(binary.LittleEndian.Uint32(b[recPrev+4:])) || s.lost != binary.LittleEndian.Uint32(b[recCommit+4:]) {
		return 0, false
	}
	time := binary.LittleEndian.Uint64(b)
	if time < s.time {
		return 0, false
	}
	raw, _, _ := counted(b)
	ns = int64(int32(raw-s.raw)) + s.lateBy - int64(c.lateBy)
	// More than half of a long stint isn't taken away.
	if measured := int64(time-s.time) + s.lateBy - int64(c.lateBy); ns < -latest || ns > 0 && ns > min(measured, max(measured/2, latest)) {
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
	c := r.late[place-r.first]
	raw, sooner, _ := counted(b)
	r.stint = stint{
		known: c.known && c.nextBy >= 0, tid: tid, lost: binary.LittleEndian.Uint32(b[recCommit+4:]),
		time: binary.LittleEndian.Uint64(b), raw: raw - uint32(sooner), lateBy: int64(c.nextBy),
	}
	s := &r.stint
	if !s.known {
		return 0, 0
	}
	// Each record between two switches is looked at once here.
	for p := place + 1; p != r.head; p++ {
		c := r.late[p-r.first]
		if !c.known {
			continue
		}
		b := r.record(p)
		ns, ok := s.excess(b, c)
		if !ok {
			break
		}
		if ns > 0 && leftFor(binary.LittleEndian.Uint32(b[recFlags:])) != Preempted {
			s.later = ns
		}
		length = int64(binary.LittleEndian.Uint64(b)-s.time) + s.lateBy - int64(c.lateBy) - s.later
		break
	}
	return s.later - s.lateBy, length
}

// leaves ends the stint of who leaves by the record b at a place: by how much its leaving is to be moved, and by how much the
// stint is still longer then than the kernel counted.
func (r *bpfRing) leaves(b []byte, place uint64, kind Kind) (shift, excess int64) {
	c := r.late[place-r.first]
	ns, ok := r.stint.excess(b, c)
	if !ok {
		return -int64(c.lateBy), 0
	}
	ns -= r.stint.later
	if ns > 0 && kind == Preempted {
		return -int64(c.lateBy) - ns, 0
	}
	return -int64(c.lateBy), ns
}
