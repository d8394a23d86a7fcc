package export

import "github.com/callreel/callreel/reel"

// rateBuckets is how many stretches of the recording calls are counted in.
const rateBuckets = 1000

// rates counts over the time of the whole recording, in a memory that does not
// grow with it: calls that began, calls that were open and events dropped.
type rates struct {
	first, width uint64 // ticks
	begun        [rateBuckets]uint64
	opened       [rateBuckets + 1]int64 // change of the number open at the bucket's start
	dropped      [rateBuckets]uint64

	next     int // bucket that is to be told next
	open     int64
	dropSum  uint64
	lastOpen int64 // values told last
	lastRate uint64
	lastDrop uint64
}

// newRates is nil for a recording without times.
func newRates(f *reel.File) *rates {
	first, last := f.FirstTick(), f.LastTick()
	if d, ok := f.Dump(); ok { // what is before its window are but the entries of calls that were open then
		first = max(first, d.From)
	}
	if f.Header().Clock.Mode == reel.ClockNone || last <= first {
		return nil
	}
	return &rates{first: first, width: (last-first)/rateBuckets + 1}
}

func (r *rates) bucket(tick uint64) int {
	if tick < r.first {
		return 0
	}
	return int(min((tick-r.first)/r.width, rateBuckets-1))
}

func (r *rates) begin(tick uint64) {
	if tick < r.first {
		r.opened[0]++
		return
	}
	b := r.bucket(tick)
	r.begun[b]++
	r.opened[b+1]++
}

func (r *rates) end(tick uint64) {
	if tick < r.first {
		r.opened[0]--
		return
	}
	r.opened[r.bucket(tick)+1]--
}

func (r *rates) drop(tick, events uint64) { r.dropped[r.bucket(tick)] += events }

// rate is one value of each counter that has changed; the others are nil.
type rate struct {
	at        int64 // nanoseconds since the recording started
	perSecond *uint64
	open      *int64
	dropped   *uint64 // since the recording started
}

// until passes on what has changed in the buckets that are over at a tick.
func (r *rates) until(w *walk, tick uint64, yield func(rate)) {
	for ; r.next < rateBuckets && r.first+uint64(r.next+1)*r.width <= tick; r.next++ {
		r.tell(w, yield)
	}
}

// rest passes on what has changed in all others, and ends the counters.
func (r *rates) rest(w *walk, yield func(rate)) {
	for ; r.next < rateBuckets && r.first+uint64(r.next)*r.width <= w.f.LastTick(); r.next++ {
		r.tell(w, yield)
	}
	zero, none := uint64(0), int64(0)
	yield(rate{at: w.nanoseconds(w.f.LastTick()), perSecond: &zero, open: &none})
}

func (r *rates) tell(w *walk, yield func(rate)) {
	b := r.next
	v := rate{at: w.nanoseconds(r.first + uint64(b)*r.width)}
	span := max(w.f.Clock().Nanoseconds(r.width), 1)
	perSecond := uint64(float64(r.begun[b]) * 1e9 / float64(span))
	r.open += r.opened[b]
	r.dropSum += r.dropped[b]
	if b == 0 || perSecond != r.lastRate {
		v.perSecond = &perSecond
	}
	open := r.open
	if b == 0 || open != r.lastOpen {
		v.open = &open
	}
	sum := r.dropSum
	if sum != r.lastDrop {
		v.dropped = &sum
	}
	r.lastRate, r.lastOpen, r.lastDrop = perSecond, open, sum
	if v.perSecond != nil || v.open != nil || v.dropped != nil {
		yield(v)
	}
}
