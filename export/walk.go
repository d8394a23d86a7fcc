package export

import (
	"context"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"

	"github.com/callreel/callreel/reel"
)

// Options say how a reel is written in another format.
type Options struct {
	// Name turns a recorded function name into the one shown, for example
	// demangled; nil shows it as recorded. It is called once for each function
	// that was called, or seldom more often.
	Name func(name string) string
	// Lines has all but [FoldedCalls] write where functions begin in their sources,
	// as far as [reel.File.Naming] knows.
	Lines bool
	// Weight is what [FoldedCalls] and [Speedscope] weigh calls by.
	Weight Weight
	// TempDir is where [Speedscope] keeps what can't be written yet; empty is
	// the system's folder for temporary files.
	TempDir string
}

// Weight is what calls are weighed by.
type Weight int

// The weights. CPU, Ready and Blocked are the parts of the wall time in which a thread was running, could have run or waited (see
// [reel.RunState]), of reels that have states.
const (
	WeightDefault Weight = iota // of folded stacks the wall time; of speedscope that, and CPU and Blocked beside it, if there are states
	WeightWall
	WeightCalls // for FoldedCalls
	WeightCPU
	WeightReady
	WeightBlocked
)

// state is the state whose time it is; reel.StateUnknown for none.
func (w Weight) state() reel.RunState {
	switch w {
	case WeightCPU:
		return reel.StateRunning
	case WeightReady:
		return reel.StateReady
	case WeightBlocked:
		return reel.StateBlocked
	}
	return reel.StateUnknown
}

// HasWeights says whether calls of a reel can be weighed by CPU time, time ready and time blocked.
func HasWeights(f *reel.File) bool {
	return (&walk{f: f, untimed: f.Header().Clock.Mode == reel.ClockNone}).weighed()
}

// A lane is where calls nest: one stack of a thread, or of a goroutine.
type lane struct {
	pid, tid  int
	name      string
	order     int         // where it stands among others of its process
	thread    reel.Thread // whose it is; of a goroutine only Process is set
	goroutine uint64
	stack     int
	main      *lane // of stack 0
	runs      bool  // no calls, but the goroutines that were on a thread
	marks     bool  // no calls, but what markers said
	last      int64 // time of the last event, in nanoseconds
	open      uint64
	data      any // the sink's
}

// note is what is to be said of an instant.
type note struct {
	kind           noteKind
	entries, exits uint64 // dropped ones
	calls          uint64 // that were open
	trigger        *reel.Trigger
	nanoseconds    uint64   // how long the trigger's call took, or what is missing is
	off            *offNote // of functions that were off, else nil
}

// name is the note in words.
func (n *note) name() string {
	if n.kind == noteTrigger {
		return triggerName(n.trigger)
	}
	if n.off != nil {
		return cut(n.off.name, maxName)
	}
	return n.kind.String()
}

type noteKind int

const (
	noteDropped noteKind = iota
	noteDamage
	noteOpen
	noteTrigger // a call made the recorder dump
	noteMissing // from a dump
	noteOff     // functions were off
	noteBudget  // what recording cost, and how much is recorded
)

// String is the note in words.
func (k noteKind) String() string {
	switch k {
	case noteDropped:
		return "events dropped: the ring was full"
	case noteDamage:
		return "events lost: the file is damaged"
	case noteTrigger:
		return "trigger"
	case noteMissing:
		return "missing from the dump"
	case noteOff:
		return "functions off"
	case noteBudget:
		return "budget"
	}
	return "calls open when the thread or the recording ended"
}

// sink takes what a walk finds: of each lane what began, ended and happened in
// order, with times in nanoseconds since the recording started that never
// decrease. A Call is valid during the call only.
type sink interface {
	lane(l *lane) // a new one
	begin(l *lane, at int64, call *reel.Call)
	end(l *lane, at int64, call *reel.Call)
	note(l *lane, at int64, n note)
	// switched says that the call which begins next is the thread's first on
	// another stack than the innermost open call of from is on.
	switched(from, to *lane, at int64)
	// run says that a goroutine was on the thread whose lane of runs is given:
	// from its first event there to its last. back is how it was on a thread
	// before, or nil.
	run(l *lane, r goroutineRun, back *goroutineRun)
}

// stackSink is a sink that weighs calls by what the thread did: it also wants to know when another stack goes on.
type stackSink interface {
	// moved says that so it is, with the thread's first lane and that of the stack, if it has one yet.
	moved(first, to *lane, known bool)
}

// walk reads a reel for a sink.
type walk struct {
	f      *reel.File
	ctx    context.Context
	opt    Options
	sink   sink
	err    error
	rates  *rates  // or nil
	placed *placed // of a dump, or nil
	// flowPoints are places in calls that markers' arrows begin and end at, or nil.
	flowPoints *flowPoints
	base       int64 // time 0, in nanoseconds since 1970
	gap        int64 // least time between two events of a lane
	untimed    bool
	used       map[int]bool // lane numbers given
	next       int          // lane number to try next
	names      int          // how many are kept ready: maxNames
	// goroutines are the names that goroutines have given themselves.
	goroutines map[uint64]string
	readers    map[uint32]*reel.ValueReader
	values     values // of the call that begins, or has ended

	pairStates bool            // calls are to have states
	clocks     bool            // the next field is wanted
	did        reel.StateTimes // what the strand has done up to the call's begin or end
}

func newWalk(ctx context.Context, f *reel.File, opt Options) *walk {
	return &walk{
		goroutines: f.GoroutineNames(),
		f:          f, ctx: ctx, opt: opt, placed: newPlaced(f), base: f.Clock().UnixNS(f.FirstTick()),
		untimed: f.Header().Clock.Mode == reel.ClockNone, used: make(map[int]bool), names: maxNames,
	}
}

// all walks over the whole reel. Threads come one after the other, unless merged
// is wanted or their events are those of goroutines: then all go forward in time
// together.
func (w *walk) all(s sink, merged bool) {
	w.sink = s
	if merged || w.f.Header().Goroutines {
		w.merged()
		return
	}
	for _, t := range w.f.Threads() {
		w.thread(t)
	}
}

// failed ends the walk with an error, also one of the context.
func (w *walk) failed() bool {
	if w.err == nil {
		w.err = w.ctx.Err()
	}
	return w.err != nil
}

// strand is a thread or a goroutine whose events are paired.
type strand struct {
	*walk
	thread    reel.Thread
	goroutine uint64
	name      string
	lanes     []*lane
	pairer    reel.Pairer
	now       uint64 // tick of what was last told
	steps     int64  // events told, which is the time without a clock
	depth     int    // open calls, those that are too deep left out
	on        *lane  // where the last call began
	reader    *reel.ValueReader
	points    []*flowPoint // to come; nil: not asked for yet
	base      uint64       // number in the thread of the first event that is being paired, if numbered
	numbered  bool
}

func (w *walk) newStrand(thread reel.Thread) *strand {
	s := &strand{walk: w, thread: thread, name: thread.Name}
	if s.name == "" {
		s.name = "thread"
	}
	s.pairer.OnEntry, s.pairer.OnCall = s.begin, s.end
	w.f.ReadyPairer(&s.pairer, thread.Key)
	s.now = w.f.FirstTick()
	s.pairer.SetTime(s.now)
	s.useStates()
	return s
}

// weighed says whether calls can be weighed by what threads, or goroutines, did meanwhile.
func (w *walk) weighed() bool {
	if w.untimed || !w.f.Header().Goroutines {
		return !w.untimed && w.f.HasStates()
	}
	g := w.f.GoroutineStates()
	return g != nil && g.Known()
}

// useStates has the Pairer know what the thread did, where that is wanted. Goroutines' are told it with their events.
func (s *strand) useStates() {
	if !s.pairStates && !s.clocks || !s.weighed() {
		return
	}
	if !s.f.Header().Goroutines {
		s.f.PairStates(&s.pairer, s.thread.Key)
	}
	if sink, ok := s.sink.(stackSink); ok && s.clocks {
		s.pairer.OnSwitch = func(_, to int, _ uint64) {
			if len(s.lanes) > 0 {
				s.weigh()
				sink.moved(s.lanes[0], s.lanes[min(to, len(s.lanes)-1)], to < len(s.lanes))
			}
		}
	}
}

// weigh asks what was done so far, where that is wanted.
func (s *strand) weigh() {
	if s.clocks {
		s.did = s.pairer.Did()
	}
}

// thread walks over all events of a thread.
func (w *walk) thread(thread reel.Thread) {
	s := w.newStrand(thread)
	var drops []reel.Drop
	for _, d := range w.f.Drops() {
		if d.Thread == thread.Key {
			drops = append(drops, d)
		}
	}
	done := uint64(0)
	s.from(thread.Key)
	s.numbered = true
	w.f.ReadThread(thread.Key, func(events []reel.Event, lost bool) bool {
		if lost {
			s.pairer.Lost()
			s.note(eventTick(events[0], s.now), note{kind: noteDamage})
		}
		for len(drops) > 0 && drops[0].After <= done+uint64(len(events)) {
			// An After that is not in order comes from a damaged file.
			n := int(max(drops[0].After, done) - done)
			s.base = done
			s.pairer.Push(events[:n])
			events, done = events[n:], done+uint64(n)
			s.dropped(drops[0])
			drops = drops[1:]
		}
		s.base = done
		s.pairer.Push(events)
		done += uint64(len(events))
		return !w.failed()
	})
	for _, d := range drops {
		s.dropped(d)
	}
	s.finish()
}

// finish ends the calls that are open.
func (s *strand) finish() {
	s.pairer.Finish(s.f.EndOf(&s.thread))
	for _, l := range s.lanes {
		if l.open > 0 {
			s.noteIn(l, s.now, note{kind: noteOpen, calls: l.open})
		}
	}
}

func eventTick(e reel.Event, otherwise uint64) uint64 {
	if e.Time != 0 {
		return e.Time
	}
	return otherwise
}

func (s *strand) dropped(d reel.Drop) {
	tick := d.Tick
	if tick == 0 {
		tick = s.now
	}
	if s.rates != nil {
		s.rates.drop(tick, d.Entries+d.Exits)
	}
	s.note(tick, note{kind: noteDropped, entries: d.Entries, exits: d.Exits})
}

func (s *strand) begin(call *reel.Call) {
	s.place(call.Start, false)
	s.depth++
	l := s.lane(call.Stack)
	if s.on != nil && s.on != l {
		s.sink.switched(s.on, l, s.nanoseconds(call.Start))
	}
	s.on = l
	if s.rates != nil {
		s.rates.begin(call.Start)
	}
	s.look(call, false)
	s.weigh()
	s.sink.begin(l, s.at(l, call.Start), call)
}

func (s *strand) end(call *reel.Call) {
	s.place(call.End, true)
	s.depth--
	l := s.lane(call.Stack)
	if call.Flags&reel.Unfinished != 0 {
		l.open++
	}
	if s.rates != nil {
		s.rates.end(call.End)
	}
	if s.placed != nil {
		if t := s.placed.of(s, call); t != nil {
			s.noteIn(l, call.End, s.trigger(t))
		}
	}
	s.look(call, true)
	s.weigh()
	s.sink.end(l, s.at(l, call.End), call)
	if call.Depth > 0 {
		s.on = l
	} else if s.on == l {
		s.on = nil
	}
}

// note tells of an instant of the whole thread, in its first lane.
func (s *strand) note(tick uint64, n note) { s.noteIn(s.lane(0), tick, n) }

func (s *strand) noteIn(l *lane, tick uint64, n note) { s.sink.note(l, s.at(l, tick), n) }

// at is the time of the lane's next event.
func (s *strand) at(l *lane, tick uint64) int64 {
	s.now = tick
	ns := s.nanoseconds(tick)
	if s.untimed {
		s.steps++
		ns = s.steps * 1000
	}
	l.last = max(ns, l.last+s.gap)
	return l.last
}

func (w *walk) nanoseconds(tick uint64) int64 { return w.f.Clock().UnixNS(tick) - w.base }

// lane returns the lane of a stack; new ones are announced.
func (s *strand) lane(stack int) *lane {
	for len(s.lanes) <= stack {
		s.lanes = append(s.lanes, s.addLane(len(s.lanes)))
	}
	return s.lanes[stack]
}

func (s *strand) addLane(stack int) *lane {
	l := &lane{pid: s.pid(s.thread), tid: s.thread.TID, name: s.name, thread: s.thread, goroutine: s.goroutine, stack: stack, last: -s.gap}
	l.main = l
	if stack > 0 {
		l.main = s.lanes[0]
	}
	switch {
	case s.goroutine != 0:
		l.tid = s.extraLane()
		l.order = math.MaxInt32 // behind the threads
	default:
		l.order = int(s.thread.Key)*reel.MaxStacks + stack
		if stack > 0 || s.used[l.tid] || l.tid <= 0 || l.tid > maxTID {
			l.tid = s.extraLane()
			l.name = fmt.Sprintf("%s (%d)", s.name, s.thread.TID)
		}
	}
	if stack > 0 {
		l.name += fmt.Sprintf(", stack %d", stack+1)
	}
	s.used[l.tid] = true
	s.sink.lane(l)
	return l
}

// maxTID is above any thread ID of Linux, whose pid_max is at most 2^22.
const maxTID = 1 << 22

// extraLane returns a lane number that is no thread's ID.
func (w *walk) extraLane() int {
	if w.next == 0 {
		w.next = maxTID
	}
	w.next++
	return w.next
}

// pid is the thread's process, as far as it is known.
func (w *walk) pid(t reel.Thread) int {
	if t.Process != 0 {
		return t.Process
	}
	return w.f.Header().PID
}

// processName is what the recorded program is called.
func (w *walk) processName() string {
	h := w.f.Header()
	switch {
	case h.Exe != "":
		return cut(path.Base(h.Exe), maxName)
	case len(h.Command) > 0:
		return cut(path.Base(h.Command[0]), maxName)
	}
	return "process"
}

// processes are those that threads are of, in order of appearance.
func (w *walk) processes() []int {
	var list []int
	seen := make(map[int]bool)
	for _, t := range w.f.Threads() {
		if pid := w.pid(t); !seen[pid] {
			seen[pid] = true
			list = append(list, pid)
		}
	}
	return list
}

// endOf says how a call ended that was not seen to return, in the words of report --json.
func endOf(flags reel.CallFlags) string {
	switch {
	case flags&reel.Unfinished != 0:
		return "unfinished"
	case flags&reel.Implicit != 0:
		return "implicit"
	}
	return ""
}

// goroutineLane is what a lane of a goroutine is called: with the name that the goroutine has given itself.
func (w *walk) goroutineLane(id uint64) string {
	if name := w.goroutines[id]; name != "" {
		return goroutineName(id) + " " + name
	}
	return goroutineName(id)
}

func goroutineName(id uint64) string { return "goroutine " + strconv.FormatUint(id, 10) }

func sortedKeys[K uint32 | uint64, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
