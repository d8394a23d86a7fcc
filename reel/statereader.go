package reel

import (
	"errors"
	"fmt"
	"math/bits"
	"sort"
)

// schedSection is a piece of a thread's states.
type schedSection struct {
	body   []byte // in the file
	count  int
	shift  uint
	before uint64 // time of the word before, in quanta
	last   uint64 // of the last word, in ticks
	since  uint64 // since when the state before was, in quanta
	cpu    int32  // on which the thread was before, -1 if that isn't known or it was on none
	flags  byte   // state before
}

// loadSched finds the sections of a chunk. Their words are read when they are needed.
func (f *File) loadSched(e *indexEntry, payload []byte) error {
	d := fields{b: payload}
	shift := d.uvarint()
	if d.err != nil || shift > 32 {
		return errors.New("the unit of its times is out of range")
	}
	f.known = max(f.known, e.last)
	for d.more() {
		key, count, before := d.uint32(), d.uvarint(), d.uvarint()
		s := schedSection{shift: uint(shift), before: before}
		if len(d.b) == 0 {
			d.fail()
			return d.err
		}
		s.flags, d.b = d.b[0], d.b[1:]
		s.cpu = int32(d.uint32()) - 1
		back := d.uvarint()
		s.since = before - min(before, back)
		long := d.uvarint()
		s.body = d.bytes()
		if d.err != nil {
			return d.err
		}
		// A word takes two bits at least.
		if count == 0 || count > maxSchedSection || count > 4*uint64(len(s.body)) || before+long < before || bits.Len64(before+long) > 64-int(shift) {
			return fmt.Errorf("the states of thread %d are out of range", key)
		}
		i, ok := f.byKey[key]
		if !ok {
			return fmt.Errorf("of thread %d, which there is not", key)
		}
		s.count, s.last = int(count), (before+long)<<shift
		t := &f.threads[i]
		if n := len(t.states); n > 0 && t.states[n-1].last>>shift > before {
			return fmt.Errorf("the states of thread %d go back in time", key)
		}
		t.states = append(t.states, s)
		f.lastTick = max(f.lastTick, s.last)
	}
	return d.err
}

// Scheduling says how the states of threads were learned; ok is false if nothing is said of them.
func (f *File) Scheduling() (s Scheduling, ok bool) {
	if f.scheduling == nil {
		return s, false
	}
	return *f.scheduling, true
}

// HasStates says whether the reel has states of any thread.
func (f *File) HasStates() bool {
	for i := range f.threads {
		if len(f.threads[i].states) > 0 {
			return true
		}
	}
	return false
}

// SchedSums is what the kernel itself says that a thread did during the recording.
func (f *File) SchedSums(thread uint32) (SchedSums, bool) {
	if i, ok := f.byKey[thread]; ok && f.threads[i].sums != nil {
		return *f.threads[i].sums, true
	}
	return SchedSums{}, false
}

// States reads the states of a thread, by its key. Of one without any there are none to read.
func (f *File) States(thread uint32) *StateReader {
	r := &StateReader{}
	if i, ok := f.byKey[thread]; ok {
		t := &f.threads[i]
		r.sections = t.states
		if n := len(t.states); n > 0 {
			r.end = min(f.EndOf(&t.Thread), max(f.known, t.states[n-1].last))
		}
	}
	return r
}

// StateReader goes forward through the states of a thread. It is for one goroutine at a time.
type StateReader struct {
	sections []schedSection
	end      uint64 // behind which nothing is known
	next     int    // section that is read next
	left     int    // words left of the one before
	shift    uint
	bits     bitReader
	coder    schedCoder
	fault    func(Fault) // is given page faults, if not nil

	cur   StateInterval // goes on; To isn't known yet
	began bool          // there is one
	done  bool          // nothing follows
	ready []StateInterval
	given int // of ready
}

// Next returns the next interval; ok is false behind the last one. Damage ends nothing: what was lost is an interval of StateUnknown.
func (r *StateReader) Next() (s StateInterval, ok bool) {
	for r.given == len(r.ready) {
		if r.done {
			return s, false
		}
		r.ready, r.given = r.ready[:0], 0
		r.words()
	}
	s = r.ready[r.given]
	r.given++
	return s, true
}

// OnFault has Next, and Seek, pass on the page faults that they read over. Next reads ahead: some come before their interval.
func (r *StateReader) OnFault(pass func(Fault)) { r.fault = pass }

// Seek makes Next go on with the interval that contains the tick, or with the first one behind it.
func (r *StateReader) Seek(tick uint64) {
	// That of the section before may reach beyond its last word.
	at := sort.Search(len(r.sections), func(i int) bool { return r.sections[i].last > tick })
	r.next, r.left, r.began, r.done = at, 0, false, false
	r.ready, r.given = r.ready[:0], 0
	if at == len(r.sections) && at > 0 {
		r.next--
	}
	for {
		s, ok := r.Next()
		if !ok {
			return
		}
		if s.To > tick {
			r.given--
			return
		}
	}
}

// word takes the next words of the scheduler, or ends.
func (r *StateReader) words() {
	if r.left == 0 {
		if r.next == len(r.sections) {
			r.done = true
			r.change(StateInterval{From: r.end, CPU: -1})
			return
		}
		r.open()
		return
	}
	var words [64]SchedEvent
	n, err := r.decode(words[:min(r.left, len(words))])
	r.left -= n
	for i := range words[:n] {
		r.take(&words[i])
	}
	if err != nil { // the next section knows where it begins
		r.left = 0
		r.change(StateInterval{From: r.sections[r.next-1].last, CPU: -1})
	}
}

// decode decodes words of the section. What comes with an error precedes the damage.
func (r *StateReader) decode(words []SchedEvent) (n int, err error) {
	err = CatchFaults(func() error {
		for n < len(words) {
			if err := r.coder.next(&r.bits, &words[n], r.shift); err != nil {
				return err
			}
			n++
		}
		return nil
	})
	return n, err
}

// take takes a word.
func (r *StateReader) take(e *SchedEvent) {
	next := StateInterval{From: e.Time, State: e.Kind.after(r.cur.State), CPU: -1}
	switch e.Kind {
	case SchedMinorFault, SchedMajorFault:
		if r.fault != nil {
			r.fault(Fault{Time: e.Time, Address: e.Address, Major: e.Kind == SchedMajorFault})
		}
		return
	case SchedIn:
		next.CPU = e.CPU
	case SchedPreempted:
		next.Preempted = true
	case SchedUninterruptible:
		next.Uninterruptible = true
	case SchedWoken:
		if r.cur.State == StateRunning || r.cur.State == StateReady && r.began { // it was about to wait, or was ready
			return
		}
		r.cur.Waker = e.Waker
	case SchedLost:
		r.cur = StateInterval{From: r.cur.From, CPU: -1}
	}
	r.change(next)
}

// change ends the state that goes on, and begins another.
func (r *StateReader) change(next StateInterval) {
	if r.began {
		next.From = max(next.From, r.cur.From)
	}
	if r.began && next.From > r.cur.From {
		s := r.cur
		s.To = next.From
		r.ready = append(r.ready, s)
	}
	r.cur, r.began = next, true
}

// open begins a section.
func (r *StateReader) open() {
	s := &r.sections[r.next]
	r.next++
	r.left, r.shift = s.count, s.shift
	r.bits = bitReader{b: s.body}
	state := RunState(s.flags & stateBits)
	r.coder = newSchedCoder(s.before, state)
	if r.began {
		if last := &r.sections[r.next-2]; last.last>>last.shift == s.before {
			return
		} else if last.last > r.cur.From { // what was between them is lost
			r.change(StateInterval{From: last.last, CPU: -1})
		} else {
			r.cur = StateInterval{From: r.cur.From, CPU: -1}
		}
	}
	if state == StateUnknown && !r.began {
		return
	}
	r.change(StateInterval{From: s.since << s.shift, State: state, CPU: s.cpu, Preempted: s.flags&stateHasBeenRunning != 0,
		Uninterruptible: s.flags&stateUninterrupted != 0})
}

// Faults gives the page faults of a thread, by its key, from one tick up to before another, until yield returns false.
func (f *File) Faults(thread uint32, from, to uint64, yield func(Fault) bool) {
	r := f.States(thread)
	more := true
	r.fault = func(x Fault) {
		if x.Time >= to {
			more = false
		}
		if more && x.Time >= from {
			more = yield(x)
		}
	}
	at := sort.Search(len(r.sections), func(i int) bool { return r.sections[i].last >= from })
	r.next = at
	for more {
		if _, ok := r.Next(); !ok {
			return
		}
	}
}
