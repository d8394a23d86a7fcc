package collect

import (
	"errors"
	"slices"
	"time"

	"github.com/callreel/callreel/process"
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
	// leastReach is how long a call that was seen is taken to have gone on, at least, on either side of that: see overdue.Silence.
	leastReach = 4 * time.Millisecond
	// Where silence is usual it is looked this often whether a thread has begun to wait, which costs it nothing, so often in a second of all threads.
	pollEvery    = time.Millisecond
	pollsASecond = 500
	pollsAtOnce  = 50
	// mostSilent is how many looks are kept of a thread that goes on writing nothing.
	mostSilent = 64
	// busyEvery is how often it is looked whether the process works: whether it has used a tenth of that time since.
	busyEvery = 10 * time.Millisecond
	// overdueAtOnce is how many threads are looked through in a round.
	overdueAtOnce = 256
)

// asking is which threads have been asked what they do.
type asking struct {
	next    int         // from where in Collector.order on threads are looked through
	polls   allowedAsks // as of all threads
	allowed map[uint32]*allowedAsks
	busy    bool          // the process works
	busyAt  uint64        // when that was looked at
	used    time.Duration // the processor time it had used by then
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
		f = &allowedAsks{}
		a.allowed[id] = f
	}
	return f.take(now, perSecond, asksASecond, asksAtOnce)
}

// take says whether there may be one more, of so many in a second, and at once, and counts it if so.
func (f *allowedAsks) take(now, perSecond uint64, often, atOnce float64) bool {
	if f.at == 0 {
		f.left = atOnce
	} else {
		f.left = min(atOnce, f.left+often*float64(now-min(f.at, now))/float64(perSecond))
	}
	f.at = now
	if f.left < 1 {
		return false
	}
	f.left--
	return true
}

// isBusy says whether the process works.
func (d *Collector) isBusy(now uint64) bool {
	a := &d.asking
	if now-min(a.busyAt, now) < ring.TicksOf(busyEvery, d.TicksPerSecond) {
		return a.busy
	}
	const share = 10
	used, err := process.CPUTime(d.Target.Process.Pid())
	passed := time.Duration(float64(now-min(a.busyAt, now)) / float64(d.TicksPerSecond) * float64(time.Second))
	a.busy, a.busyAt, a.used = err == nil && (used-a.used)*share >= passed, now, used
	return a.busy
}

// heard takes the answers that have come.
func (d *Collector) heard() (err error) {
	if d.Overdue == nil {
		return nil
	}
	for a := range d.Overdue.Answers {
		if _, asked := d.began.asked[a.NSTID]; asked && a.Began {
			d.began.asked[a.NSTID] = &a.Look
			continue
		}
		if k := d.known[a.NSTID]; k != nil && k.silence.Last == a.Since {
			k.silence.Heard(a.Look)
			if a.Wait != 0 && a.Wait != k.waited {
				k.waited, k.waitedAt = a.Wait, a.Tick
			}
			if k.ThreadSink != nil && k.silence.Looks() >= mostSilent && !d.drainer.Unread(k.nstid) {
				err = errors.Join(err, k.handOn(k.silence.Flush()))
			}
		}
	}
	return err
}

// lost takes calls for what was seen, and no more, whose ends will not be written any more: see probes.Switches. All that the thread has written
// before a tick has come.
func (k *thread) lost(before uint64) error {
	d := k.c
	if d.Overdue == nil || k.counted == nil || k.ThreadSink == nil {
		return nil
	}
	if _, waits := k.silence.Awaits(); waits {
		return nil
	}
	entries, since := d.Switches.Forget(k.counted, before, d.TicksPerSecond)
	if len(entries) == 0 {
		return nil
	}
	var calls []overdue.Call
	for _, e := range slices.Backward(entries) {
		calls = append(calls, overdue.Call{SP: e.SP, ID: e.ID()})
	}
	return k.handOn(k.silence.Lost(calls, since))
}

// waits looks whether a thread waits that has been silent as usual, and says whether it has begun to since it was asked what it does, or
// is in the same wait as then.
func (d *Collector) waits(k *thread, now uint64) (begun, same bool) {
	if !d.asking.polls.take(now, d.TicksPerSecond, pollsASecond, pollsAtOnce) {
		return false, false
	}
	k.poll = now + ring.TicksOf(pollEvery, d.TicksPerSecond)
	wait, is, err := d.Target.Process.Waits(k.tid)
	if err != nil || !is {
		return false, false
	}
	k.silence.Waits(wait, now)
	if wait == k.waited { // who waits for long may wait for much longer
		k.poll = max(k.poll, now+(now-min(k.waitedAt, now))/4)
		return false, true
	}
	k.waited, k.waitedAt = wait, now
	return true, false
}

// ask asks what threads do that have written nothing for long, within a call. It returns for how long it may be rested.
func (d *Collector) ask(longest time.Duration) (time.Duration, error) {
	if d.Overdue == nil {
		return longest, nil
	}
	now := ring.Ticks()
	ticks := func(t time.Duration) uint64 { return ring.TicksOf(t, d.TicksPerSecond) }
	rest := ticks(longest)
	if d.isBusy(now) { // a thread that writes next to nothing may come to something slow at any time
		rest = min(rest, ticks(leastOverdue))
	}
	for range min(len(d.order), overdueAtOnce) {
		d.asking.next++
		k := d.order[d.asking.next%len(d.order)]
		if _, waits := k.silence.Awaits(); waits || k.counted == nil || k.over || k.silence.Last == 0 {
			continue
		}
		if !d.drainer.Unread(k.nstid) {
			if err := k.lost(now); err != nil {
				return 0, err
			}
		}
		in, open := k.counted.Open(0)
		due := max(ticks(leastOverdue), k.asked+k.asked/4)
		is := now - min(k.silence.Last, now)
		usual := overdueTimes * d.Tally.Usual(in.ID())
		loose := is < usual || !open
		again, begun, same := loose && k.asked > 0, false, false
		if again && (is >= due || now >= k.poll) {
			begun, same = d.waits(k, now)
		}
		switch {
		case same && is >= due: // it does what it did: there are only so many looks
			k.asked = is
			rest = min(rest, max(is/4, ticks(leastRest)))
			continue
		case is < due && !begun:
			rest = min(rest, due-is)
			if again {
				rest = min(rest, max(k.poll-min(k.poll, now), ticks(leastRest)))
			}
			continue
		case d.drainer.Unread(k.nstid):
			continue
		case loose && !d.asking.may(in.ID(), now, d.TicksPerSecond):
			k.asked = max(k.asked, usual-usual/4)
			continue
		}
		q := overdue.Question{TID: k.tid, NSTID: k.nstid, Since: k.silence.Last, Usual: loose}
		if around, open := k.counted.Open(k.silence.Held()); open {
			q.Within = overdue.Call{SP: around.SP, ID: around.ID()}
		}
		if d.Overdue.Ask(q) {
			k.asked = is
		}
	}
	return max(time.Duration(float64(rest)/float64(d.TicksPerSecond)*float64(time.Second)), leastRest), nil
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
	if _, waits := k.silence.Awaits(); waits {
		look := k.c.began.asked[k.nstid]
		if look == nil {
			look = &overdue.Look{}
		}
		if err := k.begun(look); err != nil {
			return err
		}
	}
	events, payloads := k.silence.End()
	k.c.seen, k.silence.Seen = k.c.seen+k.silence.Seen, 0
	if len(events) == 0 {
		return nil
	}
	return k.handOn(events, payloads)
}
