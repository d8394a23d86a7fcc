package ring

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/callreel/callreel/reel"
)

// tornChunk is a chunk with events that its thread may still write: it can't be used again until then.
type tornChunk struct {
	tid     int
	idx     uint32
	holes   []int
	spent   int    // the event that clearBut has left, counted from 1; 0 if there is none
	taking  uint64 // its address, from behind
	movedOn bool   // the thread has gone on to another chunk
}

const (
	// holePatience is how long a thread may take from claiming an event to writing it, once it has claimed another,
	// which only a signal handler in between does. It is the thread's own time where that is known: on a busy machine a
	// handler may have to wait for a processor for longer. For one that waits for something else there is mostPatience.
	holePatience = 100 * time.Millisecond
	mostPatience = 10 * time.Second
	// holeLasts is for how long a hole has to last until it is asked how long its thread has run: nearly all are filled within microseconds, and
	// with a budget there is one in most rounds.
	holeLasts = 10 * time.Millisecond
	// ranUnread says that this wasn't asked yet.
	ranUnread = time.Duration(-2)
)

// claimed is how many events of its chunk the thread had claimed a moment ago.
func (d *Drainer) claimed(t *thread) int {
	word := atomic.LoadUint64(d.m.u64(t.slot() + SlotSpare))
	if word == 0 {
		word = atomic.LoadUint64(d.m.u64(t.slot() + SlotClaim))
	}
	available, capacity := -int(int64(word)>>ClaimShift), d.m.capacity(t.chunk-1)
	return capacity - max(0, min(available, capacity))
}

// passHole moves past events that were claimed and not written, when it is time to. moved says that the thread has gone
// on to another chunk.
func (d *Drainer) passHole(t *thread, moved, final bool) bool {
	end := d.m.capacity(t.chunk - 1)
	if !final {
		if !moved {
			end = d.claimed(t)
		}
		if end <= t.pos+1 && !moved {
			t.holeSince = time.Time{} // nothing is missing, or what is has only just been begun
			return false
		}
		if t.holeSince.IsZero() {
			t.holeSince, t.holeRan = time.Now(), ranUnread
		}
		if !d.longAgo(t) {
			return false
		}
	}
	events := d.m.events(t.chunk - 1)
	at := t.pos
	for at < end && atomic.LoadUint32(&events[at].Word) == 0 {
		at++
	}
	if at == end && !moved {
		return false // there is nothing behind it
	}
	t.holed = t.holed || at > t.pos
	for hole := t.pos; hole < at; hole++ {
		d.totals.Torn++
		if !final {
			d.tear(t, hole)
		}
	}
	t.pos = at
	t.holeSince = time.Time{}
	return true
}

// ran is how long the thread has run so far, -1 when that isn't known.
func (d *Drainer) ran(t *thread) time.Duration {
	if d.Ran != nil {
		if ran, ok := d.Ran(t.tid); ok {
			return ran
		}
	}
	return -1
}

// longAgo says whether the thread has had time enough to fill its hole.
func (d *Drainer) longAgo(t *thread) bool {
	since := time.Since(t.holeSince)
	if t.holeRan == ranUnread {
		if since < holeLasts {
			return false
		}
		t.holeRan = d.ran(t)
	}
	if since < holePatience || since >= mostPatience || t.holeRan < 0 {
		return since >= holePatience
	}
	now := d.ran(t)
	return now < 0 || now-t.holeRan >= holePatience
}

// tear notes that the thread may still write the event at hole.
func (d *Drainer) tear(t *thread, hole int) {
	d.hold(t)
	t.torn.holes = append(t.torn.holes, hole)
}

// appendWithLate hands a run on, and with it the events that were passed over as holes and have come since. The thread
// wrote such an event before those of the run that follow it in time, and their words, which were seen, publish what it
// wrote before them: so it is here by now. Without a clock it goes before the run: what it was interrupted by has been handed on already, but for what
// is in the run.
func (d *Drainer) appendWithLate(t *thread, run []reel.Event, payloads []Payload) error {
	for _, e := range d.late(t.tid) {
		k := 0
		for e.Time != 0 && k < len(run) && run[k].Time <= e.Time {
			k++
		}
		if k > 0 {
			if t.sink != nil {
				if err := t.pass(run[:k], Within(payloads, 0, k)); err != nil {
					return err
				}
			}
			payloads = Within(payloads, k, len(run))
			run = run[k:]
		}
		if err := d.appendLate(t, e); err != nil {
			return err
		}
	}
	if len(run) == 0 || t.sink == nil {
		return nil
	}
	return t.pass(run, payloads)
}

func (d *Drainer) appendLate(t *thread, e reel.Event) error {
	d.totals.Torn--
	if t.sink == nil || isPayload(e.Word) {
		return nil // a payload's event has been handed on without, or it only fills the chunk
	}
	if d.EndsAt != 0 && e.Time > d.EndsAt {
		return nil
	}
	if IsMark(e.Word) {
		return d.passMarks(t, []reel.Event{e}, nil)
	}
	if !t.counted {
		d.totals.count([]reel.Event{e})
	}
	return t.sink.Append([]reel.Event{e})
}

// late takes the events of a thread that have come into holes.
func (d *Drainer) late(tid int) []reel.Event {
	var come []reel.Event
	for _, c := range d.torn {
		if c.tid != tid {
			continue
		}
		events := d.m.events(c.idx)
		d.clearSpent(c)
		c.holes = slices.DeleteFunc(c.holes, func(hole int) bool {
			if atomic.LoadUint32(&events[hole].Word) == 0 {
				return false
			}
			come = append(come, events[hole])
			events[hole] = reel.Event{}
			return true
		})
	}
	return come
}

// releaseTorn frees chunks that the thread has left and that have no holes any more, and hands on what came last.
func (d *Drainer) releaseTorn() error {
	if len(d.torn) == 0 {
		return nil
	}
	for _, t := range d.order {
		if t.over || t.waits != nil {
			continue
		}
		for _, e := range d.late(t.tid) {
			if err := d.appendLate(t, e); err != nil {
				return err
			}
		}
	}
	d.torn = slices.DeleteFunc(d.torn, func(c *tornChunk) bool {
		if len(c.holes) > 0 || c.spent != 0 || !c.movedOn {
			return false
		}
		d.free(c.idx)
		return true
	})
	return nil
}
