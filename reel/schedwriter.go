package reel

import (
	"fmt"
	"time"
)

// States are written for all threads together, since most threads have few: a chunk holds one section for each thread that had any.
const (
	maxSched      = 1 << 14 // words that wait to be written, of all threads
	worthSched    = 1 << 11 // words for which Flush writes them
	maxSchedDelay = 2 * time.Second
	// maxSchedSection is how many words a section has, which is what a reader decodes to find a moment.
	maxSchedSection = 1 << 11
)

// schedBuffer is what waits to be written of all threads.
type schedBuffer struct {
	shift   uint
	threads []*ThreadWriter // those with words
	count   int
	known   uint64 // see SchedKnown
	told    uint64 // the same, of what is written
	written time.Time

	waits []threadWait
}

// threadStates is what waits of one thread, and where its words that were written end.
type threadStates struct {
	pending []SchedEvent
	at      SchedEvent // the last one of the written that changed the state; only Kind and CPU are of use
	state   RunState
	last    uint64 // time of the last one, in quanta
}

// Scheduling says how the states of threads are learned. It may be called again; the last word counts.
func (w *Writer) Scheduling(s Scheduling) error {
	return w.put(frame{kind: KindScheduling, count: 1}, appendScheduling(make([]byte, frameSize), &s))
}

// Sched takes what the scheduler did with the thread, in order of time. It does not keep the slice. A thread may have states and no
// calls.
func (t *ThreadWriter) Sched(events []SchedEvent) error {
	if len(events) == 0 {
		return nil
	}
	w := t.w
	w.schedMu.Lock()
	defer w.schedMu.Unlock()
	b := &w.sched
	for len(events) > 0 {
		n := min(len(events), maxSched-b.count)
		if len(t.states.pending) == 0 {
			b.threads = append(b.threads, t)
		}
		t.states.pending = append(t.states.pending, events[:n]...)
		b.count += n
		events = events[n:]
		if b.count >= maxSched {
			if err := w.writeSched(); err != nil {
				return err
			}
		}
	}
	return nil
}

// SchedKnown says that the states of all threads were told up to that tick: what a thread was last said to be it still was then.
func (w *Writer) SchedKnown(tick uint64) {
	w.schedMu.Lock()
	defer w.schedMu.Unlock()
	w.sched.known = max(w.sched.known, tick)
}

// flushSched writes what waits, if it is worth a chunk or has waited for long, or if it is the last.
func (w *Writer) flushSched(last bool) error {
	w.schedMu.Lock()
	defer w.schedMu.Unlock()
	b := &w.sched
	if b.written.IsZero() {
		b.written = time.Now()
	}
	if !last && b.count < worthSched && time.Since(b.written) < maxSchedDelay {
		return nil
	}
	if err := w.flushWaits(); err != nil {
		return err
	}
	if b.count == 0 && b.known <= b.told {
		return nil
	}
	return w.writeSched()
}

// writeSched writes a chunk. The caller holds schedMu.
func (w *Writer) writeSched() error {
	b := &w.sched
	out := appendUvarint(make([]byte, frameSize, frameSize+3*b.count+64), uint64(b.shift))
	f := frame{kind: KindSched, count: uint32(b.count), first: ^uint64(0)}
	for _, t := range b.threads {
		pending := t.states.pending
		f.first = min(f.first, pending[0].Time)
		for len(pending) > 0 {
			n := min(len(pending), maxSchedSection)
			out = t.appendSection(out, pending[:n], b.shift)
			pending = pending[n:]
		}
		t.states.pending = t.states.pending[:0]
		if cap(t.states.pending) > 1<<10 {
			t.states.pending = nil
		}
		b.known = max(b.known, t.states.last<<b.shift)
	}
	f.last = b.known
	f.first = min(f.first, f.last)
	b.threads, b.count, b.told, b.written = b.threads[:0], 0, b.known, time.Now()
	return w.put(f, out)
}

// appendSection appends the thread's next words, and moves on behind them.
//
//	key, words, time of the word before in quanta, state before, CPU+1, for how many quanta that had been so, quanta to the last word, bytes,
//	and the words
func (t *ThreadWriter) appendSection(b []byte, events []SchedEvent, shift uint) []byte {
	st := &t.states
	b = appendUvarint(b, uint64(t.thread.Key))
	b = appendUvarint(b, uint64(len(events)))
	b = appendUvarint(b, st.last)
	b = append(b, st.flags())
	b = appendUvarint(b, uint64(uint32(st.at.CPU+1)))
	b = appendUvarint(b, st.last-min(st.last, st.at.Time>>shift))
	c := newSchedCoder(st.last, st.state)
	var w bitWriter
	for i := range events {
		e := events[i]
		c.append(&w, &e, shift)
		if e.Kind.changes() {
			st.at = e
		}
	}
	b = appendUvarint(b, c.now-st.last)
	st.last, st.state = c.now, c.state
	body := w.finish()
	b = appendUvarint(b, uint64(len(body)))
	return append(b, body...)
}

// changes says whether a word is about the state.
func (k SchedKind) changes() bool { return k != SchedMinorFault && k != SchedMajorFault }

// Flags of a section: the state in the lowest bits.
const (
	stateBits           = 3
	stateUninterrupted  = 1 << 2
	stateHasBeenRunning = 1 << 3
)

func (st *threadStates) flags() byte {
	f := byte(st.state)
	switch st.at.Kind {
	case SchedUninterruptible:
		f |= stateUninterrupted
	case SchedPreempted:
		f |= stateHasBeenRunning
	}
	return f
}

// SchedSums records what the kernel itself says that the thread did during the recording.
func (t *ThreadWriter) SchedSums(s SchedSums) error {
	b := appendUvarint(make([]byte, frameSize, frameSize+30), uint64(t.thread.Key))
	b = appendUvarint(b, s.Running)
	b = appendUvarint(b, s.Ready)
	return t.w.put(frame{kind: KindSchedSums, count: 1}, b)
}

func appendScheduling(b []byte, s *Scheduling) []byte {
	b = appendTaggedString(b, tagSource, s.Source)
	b = appendTaggedString(b, tagReason, s.Reason)
	if s.WakeUps {
		b = appendTagged(b, tagWakeUps, 1)
	}
	if s.Faults {
		b = appendTagged(b, tagFaults, 1)
	}
	return b
}

// Field tags of Scheduling.
const (
	tagSource = iota + 1
	tagReason
	tagWakeUps
	tagFaults
)

func parseScheduling(payload []byte) (Scheduling, error) {
	d := fields{b: payload}
	var s Scheduling
	for d.more() {
		switch tag, v := d.tagged(); tag {
		case tagSource:
			s.Source = string(v)
		case tagReason:
			s.Reason = string(v)
		case tagWakeUps:
			s.WakeUps = v.number() != 0
		case tagFaults:
			s.Faults = v.number() != 0
		}
	}
	return s, d.err
}

func (f *File) loadSchedSums(payload []byte, count uint32) error {
	d := fields{b: payload}
	for range count {
		key, s := d.uint32(), SchedSums{Running: d.uvarint(), Ready: d.uvarint()}
		if d.err != nil {
			return d.err
		}
		i, ok := f.byKey[key]
		if !ok {
			return fmt.Errorf("of thread %d, which there is not", key)
		}
		f.threads[i].sums = &s
	}
	return nil
}
