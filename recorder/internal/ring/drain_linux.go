package ring

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/callreel/callreel/reel"
)

// Sink takes what one thread wrote. The events are only valid during the call.
type Sink interface {
	Append(events []reel.Event) error
	// Dropped says that so many more entries were dropped, and so many exits of accepted calls lost, up to about now.
	Dropped(entries, exits, tick uint64) error
}

// Drainer moves events out of the rings. It is used by one goroutine.
//
// The target can write anything into the memory, and nothing that it writes is believed: indexes are checked, a chunk
// has one owner at a time, and every loop is bounded.
type Drainer struct {
	// Min, if not 0, is how many ticks a call must take at least: see SetMin. Once threads are being drained SetLeast changes it.
	Min uint64
	// TakesBack says that stubs may take entries back, which recordings do that begin with a Min.
	TakesBack bool
	// EndsAt, if not 0, is the tick at which recording ended. What a thread writes later isn't handed on: gates are closed one by one, and
	// calls behind the first of them may lack an exit that calls behind another have.
	EndsAt uint64
	// Goroutines says that markers of a Go program are recorded: sinks of marks are told which goroutine goes on, as their other events tell
	// those of calls.
	Goroutines bool
	// Most, if not 0, is how many events of one thread are drained before the others have their turn, MostAtOnce otherwise.
	Most int
	// Ran, if not nil, says how much processor time a thread has used, and whether that is known.
	Ran func(tid int) (time.Duration, bool)

	m         *Memory
	open      func(tid, pid int, name string) (Sink, error)
	threads   map[int]*thread
	order     []*thread // those that are over are taken out at the next round
	over      int       // of them
	registry  registry
	taken     []bool // by chunk: a thread's events are being read from it, or it is torn
	torn      []*tornChunk
	totals    Totals
	split     Payloads
	marks     Marks
	raw       []reel.Event
	again     map[int]bool // see Late
	allowance allowance
	unheard   int // threads of which nothing was known but that they have dropped calls
	others    struct{ entries, exits uint64 }
}

// Totals are counts since the start.
type Totals struct {
	Events, Entries uint64
	Marks           uint64 // passings of markers, which Events doesn't count
	Dropped         uint64 // entries
	LostExits       uint64 // exits of accepted calls; of calls that were dropped, at worst
	Torn            uint64 // events that were begun and not ended: the thread died, or a signal handler jumped out
	Threads         int
	AtOnce          int // threads that had registered and not ended, at most
}

type thread struct {
	tid       int
	*waits               // nil once it has written or dropped something
	over      bool       // it has ended
	sink      Sink       // nil while the thread is off
	marks     MarkSink   // nil for a sink that takes none
	chunk     uint32     // index+1
	pos       int        // of the next event in it
	torn      *tornChunk // the chunk's holes, nil when it has none
	holeSince time.Time
	holeRan   time.Duration // what the thread had run soon after, -1 when that is not known, or ranUnread
	dropped   uint64
	lost      uint64
	holed     bool        // events of its chunk were passed over
	long      *longEnough // what the sink is behind, with Drainer.Min
	entered   *entered    // what it is behind if it was off before
	counted   bool        // the sink counts what it is given
	met       bool        // it is among Totals.Threads
	past      bool        // it has written an event later than Drainer.EndsAt
}

// waits is what is kept of a thread that has registered, which costs it nothing, until it has shown that there is something to record.
type waits struct {
	pid   int
	since time.Time
	name  string
}

// MostAtOnce is how many events of one thread are drained in a round before the others have their turn: some 15 ms of work.
const MostAtOnce = 256 * ChunkEvents

// Unread says whether a thread has written what wasn't drained yet.
func (d *Drainer) Unread(tid int) bool {
	t := d.threads[tid]
	if t == nil || t.chunk == 0 {
		return false
	}
	events := d.m.events(t.chunk - 1)
	return t.pos >= len(events) || atomic.LoadUint32(&events[t.pos].Word) != 0 || atomic.LoadUint32(d.m.u32(d.m.chunk(t.chunk-1)+ChunkNext)) != 0
}

// atOnce is how many events of one thread are drained before the others have their turn.
func (d *Drainer) atOnce() int {
	if d.Most > 0 {
		return d.Most
	}
	return MostAtOnce
}

// Left says whether a round that has drained so many events may have left some that were there when it began.
func (d *Drainer) Left(events int) bool { return events >= d.atOnce() }

// NewDrainer drains m. open is called for each thread when its first event is met, or when it has ended and has dropped calls, with the
// name it had at the first, and with its process where forked children are followed, else 0; both IDs are as the target's namespace counts. A thread without a sink is off, see
// Off. Thread 0 is all others together that have ended and
// have dropped calls.
func NewDrainer(m *Memory, open func(tid, pid int, name string) (Sink, error)) *Drainer {
	return &Drainer{m: m, open: open, threads: map[int]*thread{}, taken: make([]bool, m.chunks)}
}

// Totals returns the counts so far.
func (d *Drainer) Totals() Totals { return d.totals }

// Threads yields the IDs of the threads that are being drained.
func (d *Drainer) Threads(yield func(tid int) bool) {
	for _, t := range d.order {
		if !t.over && !yield(t.tid) {
			return
		}
	}
}

// Waiting calls f for the threads that have registered and written nothing yet: with their IDs, those of their processes as they tell
// them, and since when. Who calls End for those that aren't there any more keeps the memory bounded that the target can take by
// registering.
func (d *Drainer) Waiting(f func(tid, pid int, since time.Time)) {
	for _, t := range d.order {
		if !t.over && t.waits != nil {
			f(t.tid, t.waits.pid, t.waits.since)
		}
	}
}

// Round drains what there is and returns how many events that was. An error is the sink's; what was taken before it is
// counted.
func (d *Drainer) Round() (int, error) {
	d.m.Beat()
	d.compact()
	if err := errors.Join(d.meet(), d.tellOthers()); err != nil {
		return 0, err
	}
	n := 0
	for i, t := range d.order {
		k, err := d.drain(t, false)
		n += k
		if err != nil {
			return n, err
		}
		if i%64 == 63 || k > ChunkEvents {
			d.m.Beat()
		}
	}
	return n, d.releaseTorn()
}

// compact forgets threads that are over.
func (d *Drainer) compact() {
	if d.over > 0 {
		d.order = slices.DeleteFunc(d.order, func(t *thread) bool { return t.over })
		d.over = 0
	}
}

// meet takes the threads in that have registered since.
func (d *Drainer) meet() error {
	now := time.Now()
	return d.registry.read(d.m, func(tid, pid int, name string) error {
		if d.threads[tid] == nil {
			t := &thread{tid: tid, waits: &waits{pid, now, name}}
			d.threads[tid] = t
			d.order = append(d.order, t)
			d.totals.AtOnce = max(d.totals.AtOnce, len(d.threads))
		}
		return nil
	})
}

// maxUnheard is how many threads get a part of their own of which nothing is known but that they have dropped calls. What others dropped is
// that of one together.
const maxUnheard = 1 << 12

// begin opens a thread that has got a chunk, or that has ended and had dropped calls. It returns false if it hasn't.
func (d *Drainer) begin(t *thread, final bool) (bool, error) {
	var slot [SlotSize]byte
	d.m.peek(slot[:], t.slot())
	if binary.LittleEndian.Uint32(slot[SlotFirst:]) == 0 {
		dropped, lost := binary.LittleEndian.Uint64(slot[SlotDropped:]), binary.LittleEndian.Uint64(slot[SlotLostExits:])
		if !final || dropped == 0 && lost == 0 {
			return false, nil
		}
		if d.unheard++; d.unheard > maxUnheard {
			d.others.entries, d.others.exits = d.others.entries+dropped, d.others.exits+lost
			return false, nil
		}
	}
	sink, err := d.open(t.tid, t.waits.pid, t.waits.name)
	if err != nil {
		return false, err
	}
	t.waits = nil
	if sink != nil {
		d.lead(t, sink, d.again[t.tid])
	} else {
		d.switchTo(t, registeredOff)
	}
	delete(d.again, t.tid)
	return true, nil
}

// tellOthers tells what threads have dropped that have got no part of their own.
func (d *Drainer) tellOthers() error {
	entries, exits := d.others.entries, d.others.exits
	if entries == 0 && exits == 0 {
		return nil
	}
	d.others.entries, d.others.exits = 0, 0
	d.totals.Dropped += entries
	d.totals.LostExits += exits
	sink, err := d.open(0, 0, "")
	if err != nil || sink == nil {
		return err
	}
	return sink.Dropped(entries, exits, Ticks())
}

func (t *thread) slot() uint64 { return SlotsOff + uint64(t.tid)*SlotSize }

// drain takes what the thread has written. With final set the thread writes no more, and holes are passed over at once.
func (d *Drainer) drain(t *thread, final bool) (int, error) {
	if t.waits != nil {
		if begun, err := d.begin(t, final); !begun {
			return 0, err
		}
	}
	if t.chunk == 0 && !d.follow(t, t.slot()+SlotFirst) {
		return 0, d.drops(t)
	}
	most := d.atOnce()
	if final {
		most = d.m.chunks * ChunkEvents
	}
	total := 0
	for most > 0 {
		n, open, err := d.take(t, final)
		total += n
		if err != nil {
			return total, err
		}
		if open {
			break
		}
		next := d.m.chunk(t.chunk-1) + ChunkNext
		moved := atomic.LoadUint32(d.m.u32(next)) != 0
		if t.pos < d.m.capacity(t.chunk-1) {
			if !d.passHole(t, moved, final) {
				break
			}
			continue
		}
		if d.startedOver(t) {
			most -= d.m.capacity(t.chunk - 1)
			continue
		}
		behind, torn := t.chunk-1, t.torn
		if !moved || !d.follow(t, next) {
			break
		}
		most -= d.m.capacity(behind)
		if torn != nil {
			torn.movedOn = true
		} else {
			d.free(behind)
		}
	}
	return total, d.drops(t)
}

// follow makes the chunk whose index+1 stands at off the thread's own, if there is such a chunk and nobody else reads
// from it.
func (d *Drainer) follow(t *thread, off uint64) bool {
	i := atomic.LoadUint32(d.m.u32(off))
	if i == 0 || uint64(i) > uint64(len(d.taken)) || d.taken[i-1] {
		return false
	}
	d.taken[i-1] = true
	t.chunk, t.pos, t.torn, t.holed, t.holeSince = i, 0, nil, false, time.Time{}
	return true
}

// startedOver notices that the thread has begun its full and drained chunk again, for want of another. Whether it has
// moved on to another must have been looked at before: it may have done both.
func (d *Drainer) startedOver(t *thread) bool {
	if t.holed || int(atomic.LoadUint32(d.m.u32(d.m.chunk(t.chunk-1)+ChunkDrained))) == d.m.capacity(t.chunk-1) {
		return false
	}
	t.pos, t.holeSince = 0, time.Time{}
	return true
}

// free gives a chunk back whose events are all zero.
func (d *Drainer) free(i uint32) {
	d.taken[i] = false
	d.m.free(i)
}

// take hands the complete events from the thread's position on to the sink, and clears them. open says that it has left some that may
// be taken back, see final.
func (d *Drainer) take(t *thread, ended bool) (_ int, open bool, _ error) {
	movedOn := ended || atomic.LoadUint32(d.m.u32(d.m.chunk(t.chunk-1)+ChunkNext)) != 0
	events := d.m.events(t.chunk - 1)[t.pos:]
	n, entries, others, marks, switches := 0, uint64(0), 0, 0, 0
	for n < len(events) {
		w := atomic.LoadUint32(&events[n].Word)
		if w == 0 {
			break
		}
		switch {
		case isPayload(w):
			others++
		case IsMark(w):
			marks++
		default:
			entries += uint64(^w & 1)
			if d.Goroutines && isSwitch(w) {
				switches++
			}
		}
		n++
	}
	if d.TakesBack && !movedOn && n < len(events) {
		all := n
		n = final(events[:n])
		open = n < all
	}
	if n == 0 {
		return 0, open, nil
	}
	run := events[:n]
	var payloads []Payload
	if others+marks > 0 && d.TakesBack { // what stands in the ring is looked at again, see clearBut
		d.raw = append(d.raw[:0], run...)
		run = d.raw
	}
	if others > 0 {
		run, payloads = d.split.Split(run)
	}
	putInOrder(run)
	own := len(run)
	if run, payloads = d.beforeEnd(t, run, payloads); len(run) < own {
		entries = entriesIn(run)
	}
	if marks+switches > 0 {
		var passed []reel.Event
		var with []Payload
		d.marks.Goroutines = d.Goroutines
		run, payloads, passed, with = d.marks.Split(run, payloads)
		if err := d.passMarks(t, passed, with); err != nil {
			return 0, false, err
		}
	}
	if err := d.appendWithLate(t, run, payloads); err != nil {
		return 0, false, err
	}
	if d.TakesBack {
		d.clearBut(t, events[:n])
	} else {
		clear(events[:n])
	}
	if !t.counted && t.sink != nil {
		d.totals.Events += uint64(len(run))
		d.totals.Entries += entries
	}
	t.pos += n
	t.holeSince = time.Time{}
	if !t.holed { // with a hole in it, it can't be started over
		atomic.StoreUint32(d.m.u32(d.m.chunk(t.chunk-1)+ChunkDrained), uint32(t.pos))
	}
	return n, open, nil
}

// beforeEnd leaves out what was written past EndsAt, and what the thread wrote behind that. It isn't counted.
func (d *Drainer) beforeEnd(t *thread, run []reel.Event, payloads []Payload) ([]reel.Event, []Payload) {
	if d.EndsAt == 0 {
		return run, payloads
	}
	k := 0
	for !t.past && k < len(run) {
		if t.past = run[k].Time > d.EndsAt; !t.past {
			k++
		}
	}
	return run[:k], Within(payloads, 0, k)
}

// putInOrder gives an event that is later than one behind it that one's time. A stub reads the clock after its claim: when
// a signal handler came in between, its calls are behind the event in the ring and before it in time. They were made
// after the claim, so that the event was made no later than they.
func putInOrder(run []reel.Event) {
	next := uint64(math.MaxUint64)
	for i := len(run) - 1; i >= 0; i-- {
		if at := run[i].Time; at > next {
			run[i].Time = next
		} else if at != 0 { // else it has none
			next = at
		}
	}
}

// drops passes on what the thread counted as dropped.
func (d *Drainer) drops(t *thread) error {
	dropped := atomic.LoadUint64(d.m.u64(t.slot() + SlotDropped))
	lost := atomic.LoadUint64(d.m.u64(t.slot() + SlotLostExits))
	if dropped <= t.dropped && lost <= t.lost {
		return nil
	}
	dropped, lost = max(dropped, t.dropped), max(lost, t.lost)
	entries, exits := dropped-t.dropped, lost-t.lost
	t.dropped, t.lost = dropped, lost
	if t.sink == nil {
		return nil
	}
	d.totals.Dropped += entries
	d.totals.LostExits += exits
	return t.sink.Dropped(entries, exits, Ticks())
}

// End drains a thread that has ended to its last event, gives its memory back and forgets it. Its slot is free for a
// thread that gets the same ID, which the kernel gives out only after all others.
func (d *Drainer) End(tid int) error {
	t := d.threads[tid]
	if t == nil {
		return nil
	}
	_, err := d.drain(t, true)
	if t.waits != nil {
		d.forget(t)
		d.m.forgetThread(tid)
		return err
	}
	for _, e := range d.late(tid) {
		err = errors.Join(err, d.appendLate(t, e))
	}
	if t.long != nil {
		err = errors.Join(err, t.long.end())
	}
	t.leave()
	d.forget(t)
	d.torn = slices.DeleteFunc(d.torn, func(c *tornChunk) bool {
		if c.tid != tid {
			return false
		}
		if c.movedOn {
			clear(d.m.events(c.idx))
			d.free(c.idx)
		}
		return true
	})
	if t.chunk != 0 {
		clear(d.m.events(t.chunk - 1))
		d.free(t.chunk - 1)
	}
	d.m.forgetThread(t.tid)
	return err
}

func (d *Drainer) forget(t *thread) {
	delete(d.threads, t.tid)
	t.over = true
	d.over++
}

// Finish drains every thread to its end, when none writes any more.
func (d *Drainer) Finish() error {
	err := d.registry.all(d.m, d.meet)
	for _, t := range d.order {
		if e := d.End(t.tid); e != nil && err == nil {
			err = e
		}
	}
	d.compact()
	return errors.Join(err, d.tellOthers())
}
