package armed

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/target"
	"github.com/callreel/callreel/reel"
)

// cause is what a dump is made for.
type cause struct {
	kind              reel.TriggerKind
	condition, detail string
	tid               int    // as the target sees it; 0 if it is about no thread
	function          uint32 // by the recording's IDs
	sp                uint32
	from, to          uint64 // TSC of the call's beginning and end, as its stub saw them; to is 0 for one that has not returned
	open              *ring.OpenCall
	goroutine         uint64 // of an open call in a Go program
	span              bool   // it is about a span that goes on, which has no frame
}

// fired makes a dump of what triggers have fired since the last look, or counts it, which inVain says.
func (a *Loop) fired() (inVain bool) {
	n := a.predicates.Fired()
	if n == a.seen && len(a.late) == 0 {
		a.letGo() // a thread was interrupted between counting what fired, which was looked at, and freezing the rings
		return false
	}
	a.counts.Fired += int(n - a.seen)
	a.counts.Suppressed += int(n - a.seen)
	isNew := n != a.seen
	causes := a.firings(n)
	a.seen = n
	a.letGo() // what was in the rings is in the store, or will be before it is overwritten
	if len(causes) == 0 || !a.mayDump() {
		a.frozenFor = 0
		return isNew
	}
	a.byTrigger(causes)
	return false
}

// A thread that fires counts that first, and then writes it down. firingPatience is for how long that is waited for, firingKept for how long it is
// looked for behind that: the thread may be interrupted right there.
const (
	firingPatience = 20 * time.Millisecond
	firingKept     = time.Minute
)

// lateFiring is one that was counted and isn't written down yet.
type lateFiring struct {
	number uint32
	since  time.Time
}

// firings reads what there is of the firings up to number n that weren't looked at, the one that froze the rings first.
func (a *Loop) firings(n uint32) []cause {
	var causes []cause
	now := time.Now()
	overwritten := func(number uint32) bool { return a.predicates.Fired()-number >= ring.Firings }
	read := func(l lateFiring, f func() (ring.Firing, bool)) (number uint32, ok bool) {
		firing, ok := f()
		for ; !ok && time.Since(l.since) < firingPatience && !overwritten(l.number); firing, ok = f() {
			time.Sleep(100 * time.Microsecond)
		}
		if !ok {
			return 0, false
		}
		if c, known := a.cause(firing); known {
			causes = append(causes, c)
		}
		return firing.Number, true
	}
	freezer := uint32(0)
	if a.snapshots.Frozen() && n != a.seen {
		freezer, _ = read(lateFiring{n, now}, func() (ring.Firing, bool) {
			f, ok := a.predicates.Freezer(0)
			return f, ok && f.Number-a.seen-1 < n-a.seen // else it is of a freeze that is over
		})
	}
	late := a.late
	for k := n - min(n-a.seen, ring.Firings) + 1; k != n+1; k++ {
		late = append(late, lateFiring{k, now})
	}
	a.late = nil
	for _, l := range late {
		if l.number == freezer {
			continue
		}
		_, ok := read(l, func() (ring.Firing, bool) { return a.predicates.Firing(l.number) })
		if !ok && !overwritten(l.number) && now.Sub(l.since) < firingKept {
			a.late = append(a.late, l)
		}
	}
	a.late = a.late[max(0, len(a.late)-ring.Firings):] // as many as there can be, whatever the target says
	return causes
}

// byTrigger makes a dump that counts as a trigger's.
func (a *Loop) byTrigger(causes []cause) {
	a.tokens--
	if made, err := a.dump(causes, a.Keep); err != nil {
		a.Notice("a dump for %q could not be made: %v", causes[0].condition, err)
	} else if made {
		a.countDump()
	}
}

// countDump counts a trigger's dump that was made; until then the trigger is one that was suppressed.
func (a *Loop) countDump() {
	t := &a.counts
	t.Dumped++
	t.Suppressed--
	a.Couple.count()
	if made := a.Couple.dumped(t.Dumped); a.Max > 0 && made == a.Max {
		a.Notice("%d dumps were made: triggers are only counted from here on", made)
	}
}

// letGo lets rings go on that a trigger has frozen.
func (a *Loop) letGo() {
	if a.snapshots.Frozen() {
		from := a.frozenSince()
		a.snapshots.LetGo()
		a.frozenFor = time.Duration(float64(ring.Ticks()-from) / float64(a.TicksPerSecond) * float64(time.Second))
		a.noteGap(from)
		a.snapshots.Thaw() // which fills the reserve
	}
}

// frozenSince is since when a trigger has had the rings frozen, now if none has.
func (a *Loop) frozenSince() uint64 {
	if !a.snapshots.Frozen() {
		return ring.Ticks()
	}
	at := a.predicates.FrozenAt()
	if at == a.frozenAt { // it is about to be written down: not before they were let go, then
		return max(a.thawed, a.Began)
	}
	a.frozenAt = at
	return at
}

// cause is what a firing says.
func (a *Loop) cause(f ring.Firing) (cause, bool) {
	t, detail, ok := a.Triggers.Fired(&f)
	if !ok {
		return cause{}, false
	}
	c := cause{kind: reel.TriggerCall, condition: t.Text, detail: detail, tid: f.TID, function: f.Word >> 1, sp: f.SP, from: f.From, to: f.To}
	if ring.IsMarkID(c.function) { // of a marker, or a span
		c.function, c.sp = 0, 0
	}
	return c, true
}

// maxOverdue is for how many calls at most one dump is made.
const maxOverdue = 64

// overdue makes a dump for calls that have not returned within their time.
func (a *Loop) overdue() {
	if !a.mayDump() {
		return // they stay overdue
	}
	now := ring.Ticks()
	var causes []cause
	a.predicates.EachOpen(func(c ring.OpenCall) {
		if int64(now-c.From) < 0 || len(causes) >= maxOverdue { // the others stay overdue
			return
		}
		if t, ok := a.Triggers.Overdue(&c, now, a.TicksPerSecond); ok {
			x := cause{kind: reel.TriggerCall, condition: t.Text, tid: a.calls.thread(c.Ctx), goroutine: c.Ctx, function: c.Word >> 1, sp: c.SP, from: c.From, open: &c}
			if ring.IsMarkID(x.function) {
				x.function, x.sp, x.span = 0, 0, true
			}
			causes = append(causes, x)
		}
	})
	if len(causes) == 0 {
		return
	}
	a.counts.Fired += len(causes)
	a.counts.Suppressed += len(causes)
	a.byTrigger(causes)
}

// answer makes a dump that somebody has asked for.
func (a *Loop) answer(q Request) {
	keep := q.Keep
	byTrigger := q.Kind == reel.TriggerStall
	if keep <= 0 || byTrigger {
		keep = max(keep, a.Keep)
	}
	var made Dumped
	c := cause{kind: q.Kind, condition: q.Condition, detail: q.Detail, from: a.tickOf(q.From), to: a.tickOf(q.To)}
	for nstid, t := range a.threads {
		if t.tid == q.TID {
			c.tid = nstid
		}
	}
	if byTrigger && c.from != 0 && c.to == 0 {
		c.to = ring.Ticks() // it goes on
	}
	if byTrigger {
		a.counts.Fired++
		a.counts.Suppressed++
		if !a.mayDump() {
			q.Answer(made, fmt.Errorf("callreel: no dump: too many already"))
			return
		}
		a.tokens--
	}
	done, err := a.dumpTo([]cause{c}, keep, &made)
	if err != nil {
		a.Notice("a dump could not be made: %v", err)
	}
	if byTrigger && done {
		a.countDump()
	}
	q.Answer(made, err)
}

// tickOf is the tick of a moment that has just been, 0 for none.
func (a *Loop) tickOf(at time.Time) uint64 {
	if at.IsZero() {
		return 0
	}
	now := ring.Ticks()
	return now - min(now, ring.TicksOf(max(0, time.Since(at)), a.TicksPerSecond))
}

// dumpAtEnd dumps the last moments of a process that has ended: the rings outlive it.
func (a *Loop) dumpAtEnd() {
	c := cause{kind: reel.TriggerEnd, condition: "exit", detail: howItEnded(a.Target.Process)}
	if _, err := a.dump([]cause{c}, a.Keep); err != nil {
		a.Notice("the last moments of the process could not be dumped: %v", err)
	}
}

// howItEnded says what is known of the end of the process.
func howItEnded(p *process.Process) string {
	e, ok := p.Ended()
	for try := 0; !ok && try < target.UndoRetries; try++ {
		time.Sleep(time.Millisecond) // it is just being reaped
		e, ok = p.Ended()
	}
	switch {
	case p.Alive():
		return "the process runs another program now"
	case !ok:
		return "the process has ended"
	case e.Signal != 0:
		return fmt.Sprintf("the process was ended by %s", unix.SignalName(e.Signal))
	}
	return fmt.Sprintf("the process has exited with code %d", e.Code)
}
