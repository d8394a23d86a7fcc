package export

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/callreel/callreel/reel"
)

// schedSink takes what a kernel's tracer says of processors and threads: that is the form in which viewers know states of threads. Times of a
// processor don't decrease; those of different ones may come in any order.
type schedSink interface {
	// switched says that a processor goes from one thread, which is in the state left as from then on, to another. 0 is none.
	switched(at int64, cpu int, from int, left leftAs, to int)
	// woken says that a thread may run from now on, and who saw to it: 0 if that isn't known or is no thread.
	woken(at int64, tid, waker, cpu int)
}

// leftAs is the state of a thread that leaves a processor, as the kernel's tracer abbreviates it.
type leftAs byte

const (
	leftRunnable        leftAs = 'R'
	leftPreempted       leftAs = '+' // written "R+"
	leftSleeping        leftAs = 'S'
	leftUninterruptible leftAs = 'D'
	leftDead            leftAs = 'X'
	// leftUnknown is one that no thread has by itself ("no load"), as viewers have none for what isn't known.
	leftUnknown leftAs = 'N'
)

// String is the state in letters.
func (l leftAs) String() string {
	if l == leftPreempted {
		return "R+"
	}
	return string(rune(l))
}

// maxCPU bounds the numbers of processors: trace_processor refuses a trace with more. It is one less, for those of [sched.idle].
const maxCPU = 1<<10 - 1

// sched makes words of a kernel's tracer of the states of threads.
type sched struct {
	*walk
	sink     schedSink
	from, to uint64 // ticks
	cpus     []schedCPU
	due      []schedBegin // threads that have not begun, the next one last
	going    schedHeap
	of       map[int]*schedThread // by ID: those that go on
	fault    func(reel.Fault)     // is told of page faults, if not nil, which may come too early
}

// schedBegin is when a thread's states begin.
type schedBegin struct {
	tick uint64
	key  uint32
	tid  int
	ends bool
}

// schedThread is a thread whose states go on.
type schedThread struct {
	schedBegin
	r         *reel.StateReader
	cur, next reel.StateInterval // cur.To is 0 before the first, next.To behind the last
	told      leftAs             // 0 if nothing was told
	on        bool               // told to be running
	cpu       int                // where it was last told to be running
	last      int64              // time of the last word
}

// schedCPU is what was told of a processor.
type schedCPU struct {
	running *schedThread
	// left is a thread that has left it, which is told with who comes next.
	left struct {
		tid int // 0 for none
		as  leftAs
	}
	last int64 // time of the last word
	told bool
}

// tellSched tells the states of all threads from one tick up to before another.
func (w *walk) tellSched(sink schedSink, from, to uint64) {
	s := w.newSched(sink, from, to)
	s.until(to)
	for cpu := range s.cpus {
		s.settle(cpu)
	}
}

func (w *walk) newSched(sink schedSink, from, to uint64) *sched {
	s := &sched{walk: w, sink: sink, from: from, to: to, of: make(map[int]*schedThread)}
	for _, t := range w.f.Threads() {
		if t.TID <= 0 || t.TID > maxTID {
			continue
		}
		if r := s.reader(t.Key); r != nil {
			if first, ok := r.Next(); ok && first.From < to {
				s.due = append(s.due, schedBegin{max(first.From, from), t.Key, t.TID, t.EndTick != 0})
			}
		}
	}
	slices.SortFunc(s.due, func(a, b schedBegin) int { return cmp.Or(cmp.Compare(b.tick, a.tick), cmp.Compare(b.key, a.key)) })
	return s
}

// until tells what was before a tick.
func (s *sched) until(tick uint64) {
	for n := 1; n%1024 != 0 || !s.failed(); n++ {
		i := len(s.due) - 1
		switch {
		case i >= 0 && s.due[i].tick < tick && (len(s.going) == 0 || s.due[i].tick <= s.going[0].when()):
			s.begin(s.due[i])
			s.due = s.due[:i]
		case len(s.going) > 0 && s.going[0].when() < tick:
			s.step()
		default:
			return
		}
	}
}

// reader reads the states of a thread from where they are told.
func (s *sched) reader(key uint32) *reel.StateReader {
	r := s.f.States(key)
	if s.from > 0 {
		r.Seek(s.from)
	}
	return r
}

// begin takes up a thread. Of two at once that have the same ID, in different containers, only one can be told.
func (s *sched) begin(b schedBegin) {
	if s.of[b.tid] != nil {
		return
	}
	t := &schedThread{schedBegin: b, r: s.reader(b.key), last: -1}
	t.r.OnFault(s.fault)
	t.next, _ = t.r.Next()
	t.next.From = max(t.next.From, s.from)
	s.of[b.tid] = t
	heap.Push(&s.going, t)
}

// step tells of the next change of a state.
func (s *sched) step() {
	t := s.going[0]
	was := t.cur
	t.cur = t.next
	t.next, _ = t.r.Next()
	if t.cur.To == 0 {
		if t.ends && was.State != reel.StateUnknown {
			s.tell(t, was.To, was, leftDead)
		}
		heap.Pop(&s.going)
		delete(s.of, t.tid)
		return
	}
	s.change(t, was)
	heap.Fix(&s.going, 0)
}

// change tells that a thread was in a state and is in another.
func (s *sched) change(t *schedThread, was reel.StateInterval) {
	now := t.cur
	if now.State == reel.StateRunning && (now.CPU < 0 || now.CPU >= maxCPU) {
		now.State = reel.StateUnknown
	}
	switch now.State {
	case reel.StateRunning:
		s.run(t, now)
	case reel.StateBlocked:
		left := leftSleeping
		if now.Uninterruptible {
			left = leftUninterruptible
		}
		s.tell(t, now.From, was, left)
	case reel.StateReady:
		switch {
		case t.on && now.Preempted:
			s.tell(t, now.From, was, leftPreempted)
		case t.on:
			s.tell(t, now.From, was, leftRunnable)
		case now.Preempted:
			s.tell(t, now.From, was, leftPreempted)
		default:
			waker, cpu := int(max(was.Waker, 0)), t.cpu
			if o := s.of[waker]; o != nil && o.on {
				cpu = o.cpu
			}
			s.sink.woken(s.time(t, now.From), t.tid, waker, cpu)
			t.told = leftRunnable
		}
	default:
		left := leftUnknown
		if t.next.To == 0 && t.ends {
			left = leftDead
		}
		if t.told != 0 || t.on {
			s.tell(t, now.From, was, left)
		}
	}
}

// run tells that a thread comes onto a processor.
func (s *sched) run(t *schedThread, now reel.StateInterval) {
	cpu := int(now.CPU)
	if t.on && t.cpu == cpu {
		return
	}
	if t.on { // it was moved
		s.leave(t, s.time(t, now.From), leftPreempted)
	}
	s.enter(t, cpu, s.time(t, now.From))
}

// tell tells that a thread is in another state than running.
func (s *sched) tell(t *schedThread, tick uint64, was reel.StateInterval, as leftAs) {
	if t.told == as && !t.on {
		return
	}
	at := s.time(t, tick)
	if !t.on { // the tracer says so only of one that leaves a processor
		s.enter(t, s.idle(t.cpu), at)
		at = t.last
	}
	s.leave(t, at, as)
}

// time is the time of the thread's next word.
func (s *sched) time(t *schedThread, tick uint64) int64 {
	t.last = max(s.nanoseconds(tick), t.last+1, 0)
	return t.last
}

// enter tells that a thread is running.
func (s *sched) enter(t *schedThread, cpu int, at int64) {
	for len(s.cpus) <= cpu {
		s.cpus = append(s.cpus, schedCPU{})
	}
	c := &s.cpus[cpu]
	if o := c.running; o != nil { // nobody has said that it left
		s.leave(o, at, leftUnknown)
	}
	if c.left.tid != 0 && c.last < at {
		s.settle(cpu)
	}
	at = max(at, c.last)
	s.sink.switched(at, cpu, c.left.tid, c.left.as, t.tid)
	c.left.tid, c.last, c.told, c.running = 0, at, true, t
	t.last, t.cpu, t.on, t.told = at, cpu, true, 0
}

// leave notes that a thread, which is running, isn't any more.
func (s *sched) leave(t *schedThread, at int64, as leftAs) {
	c := &s.cpus[t.cpu]
	at = max(at, c.last)
	c.running, c.left.tid, c.left.as, c.last = nil, t.tid, as, at
	t.last, t.on, t.told = at, false, as
}

// settle tells of a thread that has left a processor and has no one to follow.
func (s *sched) settle(cpu int) {
	c := &s.cpus[cpu]
	if c.left.tid != 0 {
		s.sink.switched(c.last, cpu, c.left.tid, c.left.as, 0)
		c.left.tid = 0
	}
}

// idle is a processor on which no thread runs, best the one given.
func (s *sched) idle(best int) int {
	if best < len(s.cpus) && s.cpus[best].running == nil {
		return best
	}
	at := slices.IndexFunc(s.cpus, func(c schedCPU) bool { return c.told && c.running == nil })
	if at < 0 {
		at = min(len(s.cpus), maxCPU)
	}
	return at
}

// when is when the thread's state changes.
func (t *schedThread) when() uint64 {
	if t.next.To == 0 {
		return t.cur.To
	}
	return t.next.From
}

// schedHeap has the thread first whose state changes next. At the same moment those that leave a processor precede those that come.
type schedHeap []*schedThread

func (h schedHeap) Len() int { return len(h) }

func (h schedHeap) Less(i, j int) bool {
	a, b := h[i], h[j]
	if x, y := a.when(), b.when(); x != y {
		return x < y
	}
	if a.on != b.on {
		return a.on
	}
	return a.key < b.key
}

func (h schedHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements [heap.Interface].
func (h *schedHeap) Push(x any) { *h = append(*h, x.(*schedThread)) }

// Pop implements [heap.Interface].
func (h *schedHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return t
}

// hasStates says whether anything is known of a thread from one tick up to before another.
func (w *walk) hasStates(thread uint32, from, to uint64) bool {
	r := w.f.States(thread)
	if from > 0 {
		r.Seek(from)
	}
	first, ok := r.Next()
	return ok && first.From < to
}

// stateLane is the lane of a thread that has states, nil if it has an ID that viewers can't know it by.
func (w *walk) stateLane(t *reel.Thread) *lane {
	pid := w.pid(*t)
	if t.TID <= 0 || t.TID > maxTID || pid <= 0 {
		return nil
	}
	l := &lane{pid: pid, tid: t.TID, name: t.Name, thread: *t, order: int(t.Key) * reel.MaxStacks}
	if l.name == "" {
		l.name = "thread"
	}
	l.main = l
	return l
}

// tellFaults passes on the page faults of a thread from one tick up to before another.
func (w *walk) tellFaults(thread uint32, from, to uint64, tell func(at int64, x reel.Fault)) {
	n := 0
	w.f.Faults(thread, from, to, func(x reel.Fault) bool {
		tell(max(w.nanoseconds(x.Time), 0), x)
		n++
		return n%1024 != 0 || !w.failed()
	})
}

func faultName(x reel.Fault) string {
	if x.Major {
		return "major page fault"
	}
	return "page fault"
}
