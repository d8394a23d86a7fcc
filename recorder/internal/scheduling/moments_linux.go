package scheduling

import (
	"errors"
	"slices"
	"time"
	"unsafe"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/waitcalls"
	"github.com/callreel/callreel/reel"
)

// Moments keeps the last of what the scheduler did, for dumps.
type Moments struct {
	*Watch
	words queue[moment]
	waits queue[momentWait]
}

// moment is a word, in little memory, momentWait what was waited for.
type moment struct {
	k    *life
	time uint64 // in ticks, and the kind in the highest bits
	what uint64 // by the kind: the processor, who woke the thread, or the address
}

const timeBits = 60

func newMoment(k *life, e *reel.SchedEvent) moment {
	m := moment{k: k, time: e.Time&(1<<timeBits-1) | uint64(e.Kind)<<timeBits}
	switch e.Kind {
	case reel.SchedIn:
		m.what = uint64(uint32(e.CPU))
	case reel.SchedWoken:
		m.what = uint64(uint32(e.Waker))
	case reel.SchedMinorFault, reel.SchedMajorFault:
		m.what = e.Address
	}
	return m
}

// event is the word as it came, but for what its kind doesn't tell.
func (m *moment) event() reel.SchedEvent {
	e := reel.SchedEvent{Time: m.time & (1<<timeBits - 1), Kind: reel.SchedKind(m.time >> timeBits), CPU: -1}
	switch e.Kind {
	case reel.SchedIn:
		e.CPU = int32(uint32(m.what))
	case reel.SchedWoken:
		e.Waker = int32(uint32(m.what))
	case reel.SchedMinorFault, reel.SchedMajorFault:
		e.Address = m.what
	}
	return e
}

type momentWait struct {
	k *life
	x endedWait
}

// kept is what a life has among the moments.
type kept struct {
	before reel.SchedEvent // the last of the words that are kept no more by which its state was told; its Kind is 0 if there is none
	words  int
}

const (
	// Words take momentsBytes of memory, or one part in ringShare of what the rings do if that is less, or one in pastShare of what calls of the
	// past do if that is more: who has asked for more memory wants to see further back. Of wordsOfWait words one ends a wait that is kept.
	momentsBytes = 16 << 20
	ringShare    = 4
	pastShare    = 8
	leastMoments = 1 << 12
	leastWaits   = 1 << 14
	wordsOfWait  = 16
	// patience is for how long a dump waits for what is under way.
	patience     = 50 * time.Millisecond
	patienceStep = time.Millisecond
)

// Keep keeps the last of what happens from a tick on. Ring is how many bytes the rings of calls have, past how many there are for calls that they
// had.
func (w *Watch) Keep(from uint64, pid int, ring, past uint64) *Moments {
	bytes := max(min(momentsBytes, ring/ringShare), past/pastShare)
	m := &Moments{Watch: w}
	m.words.most = max(leastMoments, int(bytes/uint64(unsafe.Sizeof(moment{}))))
	m.waits.most = min(m.words.most, max(leastWaits, m.words.most/wordsOfWait))
	w.start(pid, from, m, keepInterval)
	return m
}

// Add says that the recording of another process has just begun, which is watched already.
func (m *Moments) Add(pid int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.beginSums(pid)
}

func (m *Moments) word(k *life, e reel.SchedEvent) {
	k.kept.words++
	old, full := m.words.push(newMoment(k, &e))
	if !full {
		return
	}
	old.k.kept.words--
	if e := old.event(); tellsState(&e) {
		old.k.kept.before = e
	}
}

func tellsState(e *reel.SchedEvent) bool {
	return e.Kind != reel.SchedMinorFault && e.Kind != reel.SchedMajorFault
}

func (m *Moments) waited(k *life, x reel.Wait, to uint64) {
	m.waits.push(momentWait{k, endedWait{x, to}})
}

func (m *Moments) drained(time.Time, uint64) error { return nil }
func (m *Moments) early(*life)                     {}
func (m *Moments) forget(k *life) bool             { return k.kept.words == 0 }
func (m *Moments) finish(uint64) error             { return nil }

// Called is a thread that is in a dump for its calls.
type Called struct {
	PID, TID int
	// Seen is a tick at which it was there, 0 for now. Since is that of the first event that the dump has of it, if that is before the window.
	Seen, Since uint64
	Writer      *reel.ThreadWriter
	// Kept are its calls that took long.
	Kept []waitcalls.Kept
}

// span is what a dump has of a life.
type span struct {
	to     *reel.ThreadWriter // nil if it isn't in the dump for its calls
	from   uint64
	before reel.SchedEvent // by which its state was told last before that
	words  []reel.SchedEvent
	waits  []reel.Wait
	calls  []waitcalls.Kept // that took long, by their ends
}

// WriteTo writes what threads did in a window of time, those that have called and others. Of each it says what it was doing when the window
// began.
func (m *Moments) WriteTo(w *reel.Writer, from, to uint64, called []Called) error {
	err := m.catchUp(to)
	m.mu.Lock()
	defer m.mu.Unlock()
	err = errors.Join(err, w.Scheduling(m.about))
	spans := m.spans(from, to, called)
	for k, s := range spans {
		if err != nil {
			break
		}
		err = m.write(w, k, s)
	}
	w.SchedKnown(min(to, m.watcher.Bound()))
	return err
}

// catchUp waits until all is there of before a tick.
func (m *Moments) catchUp(tick uint64) error {
	for began := time.Now(); ; {
		if err := m.drain(false); err != nil {
			return err
		}
		if m.watcher.Bound() >= tick || m.SumsOnly() || time.Since(began) >= patience {
			return nil
		}
		time.Sleep(patienceStep)
	}
}

// spans cuts the window out. The caller holds mu.
func (m *Moments) spans(from, to uint64, called []Called) map[*life]*span {
	spans := map[*life]*span{}
	m.objects.round(time.Now())
	past := m.newPastCalls()
	for _, c := range called {
		k := m.lives.latest(who{c.PID, c.TID})
		if k == nil {
			continue
		}
		if c.Seen != 0 {
			k = m.lives.at(k.who, c.Seen)
		}
		since := from
		if c.Since != 0 {
			since = min(from, c.Since)
		}
		spans[k] = &span{to: c.Writer, from: since, calls: c.Kept}
		past.add(k, c.Kept)
	}
	if len(past.next) > 0 { // which may be on sockets that nobody has looked for yet
		m.objects.next = time.Time{}
		m.objects.learn(lookFor(m.objects.due(time.Now())), time.Now())
	}
	for _, list := range m.lives.by {
		for _, k := range list {
			if spans[k] == nil && (k.ended == 0 || k.ended >= from) {
				spans[k] = &span{from: from}
			}
			if s := spans[k]; s != nil {
				s.before = k.kept.before
			}
		}
	}
	m.words.each(func(x *moment) {
		s, e := spans[x.k], x.event()
		switch {
		case s == nil || e.Time > to:
		case e.Time >= s.from:
			s.words = append(s.words, e)
		case tellsState(&e):
			s.before = e
		}
	})
	add := func(k *life, x reel.Wait) {
		s := spans[k]
		switch {
		case s == nil || x.Time > to:
			return
		case x.Time < s.from && x.Time != s.before.Time:
			return
		}
		x.Time, x.Object = max(x.Time, s.from), m.objects.named(x.Object)
		s.waits = append(s.waits, x)
	}
	past.explain(m.waits.inOrder(), spans, func(w *momentWait) {
		if w.x.isKnown() {
			add(w.k, w.x.Wait)
		}
	})
	for k := range spans {
		if x, ok := m.waitsFor(k, to); ok {
			add(k, x)
		}
	}
	return spans
}

// write writes a thread's part. The caller holds mu.
func (m *Moments) write(w *reel.Writer, k *life, s *span) (err error) {
	if s.before.Kind != 0 && s.before.Kind != reel.SchedEnded {
		s.before.Time = max(s.before.Time, s.from)
		s.words = append([]reel.SchedEvent{s.before}, s.words...)
	}
	if len(s.words) == 0 {
		return nil
	}
	if s.to == nil {
		about := reel.Thread{TID: k.tid, Process: k.pid}
		if k.ended == 0 {
			about.Name, _ = process.ThreadName(k.pid, k.tid) // "" and 0 for one that has just ended
			about.StartTime, _ = process.StartTime(k.pid, k.tid)
		}
		if s.to, err = w.Thread(about); err != nil {
			return err
		}
		if k.ended != 0 {
			defer func() { err = errors.Join(err, s.to.End(k.ended)) }()
		}
	}
	return errors.Join(s.to.Sched(s.words), s.to.Waits(s.waits))
}

// queue keeps the last of what is pushed.
type queue[T any] struct {
	most int
	list []T
	next int // the oldest, when it is full
}

// push adds one, and returns the one that had to go for it.
func (q *queue[T]) push(x T) (old T, full bool) {
	if len(q.list) < q.most {
		q.list = append(q.list, x)
		return old, false
	}
	old, q.list[q.next] = q.list[q.next], x
	if q.next++; q.next == q.most {
		q.next = 0
	}
	return old, true
}

// inOrder returns a copy of all, the oldest first.
func (q *queue[T]) inOrder() []T {
	return append(slices.Clone(q.list[q.next:]), q.list[:q.next]...)
}

// each calls f with all, the oldest first.
func (q *queue[T]) each(f func(*T)) {
	for i := range q.list {
		f(&q.list[(q.next+i)%len(q.list)])
	}
}
