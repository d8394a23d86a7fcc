package scheduling

import (
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// Thread takes the calls of a thread. It is for one goroutine at a time.
type Thread struct {
	*reel.ThreadWriter // nil while it isn't known which thread of the reel it is
	r                  *Reel
	k                  *life
	about              reel.Thread
}

// bind finds out which thread it is that has called at that tick. The caller holds mu.
func (t *Thread) bind(tick uint64) error {
	r, w := t.r, who{t.about.Process, t.about.TID}
	for _, k := range r.lives.by[w] {
		if k.part.called || k.ended != 0 && k.ended < tick || k.part.start != 0 && t.about.StartTime != 0 && k.part.start != t.about.StartTime {
			continue
		}
		return t.take(k)
	}
	began := uint64(0)
	if r.lives.latest(w) != nil {
		began = tick
	}
	return t.take(r.lives.add(w, began))
}

// take makes a life the one that calls.
func (t *Thread) take(k *life) (err error) {
	p := &k.part
	t.k, p.called = k, true
	if p.w == nil {
		p.name, p.start = t.about.Name, t.about.StartTime
		err = t.r.begin(k, t.about)
	} else {
		err = p.w.Rename(t.about.Name)
	}
	t.ThreadWriter = p.w
	return err
}

// bound binds it, if it isn't bound yet, by an event of that tick; 0 is for none.
func (t *Thread) bound(tick uint64) error {
	if t.ThreadWriter != nil {
		return nil
	}
	if tick == 0 {
		tick = ring.Ticks()
	}
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	return t.bind(tick)
}

func first(events []reel.Event) uint64 {
	for i := range events {
		if events[i].Time != 0 {
			return events[i].Time
		}
	}
	return 0
}

// Append takes the next events.
func (t *Thread) Append(events []reel.Event) error {
	if t.ThreadWriter == nil {
		if err := t.bound(first(events)); err != nil {
			return err
		}
	}
	return t.ThreadWriter.Append(events)
}

// AppendWith takes the next events with the values that they carry.
func (t *Thread) AppendWith(events []reel.Event, values []reel.ValueSet) error {
	if t.ThreadWriter == nil {
		if err := t.bound(first(events)); err != nil {
			return err
		}
	}
	return t.ThreadWriter.AppendWith(events, values)
}

// Marks takes the next passings of markers.
func (t *Thread) Marks(marks []reel.Mark) error {
	if t.ThreadWriter == nil {
		if err := t.bound(marks[0].Time); err != nil {
			return err
		}
	}
	return t.ThreadWriter.Marks(marks)
}

// Dropped says that calls were not recorded.
func (t *Thread) Dropped(entries, exits, tick uint64) error {
	if err := t.bound(tick); err != nil {
		return err
	}
	return t.ThreadWriter.Dropped(entries, exits, tick)
}

// Rename goes by the thread's new name.
func (t *Thread) Rename(name string) error {
	t.about.Name = name
	if t.ThreadWriter == nil {
		return nil
	}
	return t.ThreadWriter.Rename(name)
}

// End says that the thread has ended, as far as the reel is concerned: it may run another program.
func (t *Thread) End(tick uint64) error {
	if err := t.bound(tick); err != nil {
		return err
	}
	r, k := t.r, t.k
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case k.ended != 0: // the scheduler knows it exactly
		tick = max(tick, k.ended)
	case process.ThreadGone(k.pid, k.tid): // its last words may be still to come
		r.lives.expire(k, time.Now())
	default:
		r.succeed(k, ring.Ticks(), len(r.globs) > 0)
	}
	if err := r.write(k); err != nil {
		return err
	}
	return t.ThreadWriter.End(tick)
}
