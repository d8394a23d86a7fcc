package collect

import (
	"errors"
	"time"

	"github.com/callreel/callreel/recorder/internal/overdue"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

const (
	// leastOverdue is how long a thread writes nothing, at least, before it is asked what it does.
	leastOverdue = time.Millisecond
	// Where that is usual for calls of a function, as it is for those by which a thread waits for work, it is done so often in a second, so often
	// at once, and else when it has lasted overdueTimes as long as such a call usually does.
	asksASecond  = 25
	asksAtOnce   = 50
	overdueTimes = 3
	// leastRest is for how long it is rested at least until a thread is to be asked.
	leastRest = 300 * time.Microsecond
	// overdueAtOnce is how many threads are looked through in a round.
	overdueAtOnce = 256
)

// asking is which threads have been asked what they do.
type asking struct {
	next    int // from where in Collector.order on threads are looked through
	allowed map[uint32]*allowedAsks
}

// allowedAsks is how often it may be asked what calls of a function do.
type allowedAsks struct {
	left float64
	at   uint64 // as of this tick
}

// may says whether it may be asked once more, and counts it if so.
func (a *asking) may(id uint32, now, perSecond uint64) bool {
	f := a.allowed[id]
	if f == nil {
		if a.allowed == nil {
			a.allowed = map[uint32]*allowedAsks{}
		}
		f = &allowedAsks{left: asksAtOnce}
		a.allowed[id] = f
	} else {
		f.left = min(asksAtOnce, f.left+asksASecond*float64(now-min(f.at, now))/float64(perSecond))
	}
	f.at = now
	if f.left < 1 {
		return false
	}
	f.left--
	return true
}

// heard takes the answers that have come.
func (d *Collector) heard() {
	if d.Overdue == nil {
		return
	}
	for a := range d.Overdue.Answers {
		if k := d.known[a.NSTID]; k != nil && k.silence.Last == a.Since {
			k.silence.Heard(a.Look)
		}
	}
}

// ask asks what threads do that have written nothing for long, within a call. It returns for how long it may be rested.
func (d *Collector) ask(longest time.Duration) time.Duration {
	if d.Overdue == nil {
		return longest
	}
	now := ring.Ticks()
	ticks := func(t time.Duration) uint64 { return ring.TicksOf(t, d.TicksPerSecond) }
	rest := ticks(longest)
	for range min(len(d.order), overdueAtOnce) {
		d.asking.next++
		k := d.order[d.asking.next%len(d.order)]
		if k.counted == nil || k.over || k.silence.Last == 0 {
			continue
		}
		in, open := k.counted.Open(0)
		due := max(ticks(leastOverdue), k.asked+k.asked/4)
		is := now - min(k.silence.Last, now)
		switch usual := overdueTimes * d.Tally.Usual(in.ID()); {
		case is < due:
			rest = min(rest, due-is)
			continue
		case d.drainer.Unread(k.nstid):
			continue
		case (is < usual || !open) && !d.asking.may(in.ID(), now, d.TicksPerSecond):
			k.asked = max(k.asked, usual-usual/4)
			continue
		}
		q := overdue.Question{TID: k.tid, NSTID: k.nstid, Since: k.silence.Last}
		if around, open := k.counted.Open(k.silence.Held()); open {
			q.Within = overdue.Call{SP: around.SP, ID: around.ID()}
		}
		if d.Overdue.Ask(q) {
			k.asked = is
		}
	}
	return max(time.Duration(float64(rest)/float64(d.TicksPerSecond)*float64(time.Second)), leastRest)
}

// weave puts in what was seen of a thread before it has written these events, with what they carry. from and to are the ticks of the first and
// the last that it has written, those of functions that are off among them.
func (k *thread) weave(events []reel.Event, payloads []ring.Payload, from, to uint64) ([]reel.Event, []ring.Payload) {
	if k.c.Overdue == nil {
		return events, payloads
	}
	k.asked = 0
	return k.silence.Next(events, payloads, from, to)
}

// lastWords puts out what is held back of threads.
func (d *Collector) lastWords() (err error) {
	for _, k := range d.known {
		err = errors.Join(err, k.lastWords())
	}
	return err
}

func (k *thread) lastWords() error {
	if k.ThreadSink == nil || k.silence.Last == 0 {
		return nil
	}
	events, payloads := k.silence.End()
	k.c.seen, k.silence.Seen = k.c.seen+k.silence.Seen, 0
	if len(events) == 0 {
		return nil
	}
	return k.handOn(events, payloads)
}
