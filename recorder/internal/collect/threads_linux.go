package collect

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/glob"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/target"
	"github.com/callreel/callreel/reel"
)

// wants says whether a thread of that name is to be recorded.
func wants(threads []string, name string) bool {
	return len(threads) == 0 || glob.Any(threads, nil, []string{name})
}

// KeepOff switches the threads off that there are and whose names none of the globs matches, before the gates open: so they take no room in
// the rings. Threads that come later are switched off when they have written something. It returns those that are off, by their IDs as
// the target sees them, and as seen from here.
func KeepOff(t *target.Target, globs []string) (map[int]int, error) {
	if len(globs) == 0 {
		return nil, nil
	}
	threads, err := t.Process.Threads()
	if err != nil {
		return nil, err
	}
	off := map[int]int{}
	for _, th := range threads {
		if !wants(globs, th.Name) && th.NSTID < ring.MaxTID {
			t.Memory.SetOff(th.NSTID, true)
			off[th.NSTID] = th.TID
		}
	}
	return off, nil
}

// SetThreads changes the globs of the names of threads that are recorded. It is called in the loop.
func (d *Collector) SetThreads(globs []string) error {
	d.Config.Threads = globs
	for nstid, k := range d.known {
		if wants(globs, k.name) != (k.ThreadSink != nil) {
			if err := d.renamed(nstid, k); err != nil {
				return err
			}
		}
	}
	if live := d.Processes.Threads(d.Target.PID()); live != nil {
		d.stillOff(live, true)
	}
	return nil
}

// stillOff looks whether threads that were kept off have ended, or have got a name by which they are to be recorded.
func (d *Collector) stillOff(live map[int]bool, names bool) {
	for nstid, tid := range d.Off {
		on := !live[tid]
		if !on && names {
			name, err := process.ThreadName(d.Target.PID(), tid)
			on = err == nil && wants(d.Config.Threads, name)
			if on {
				d.drainer.Late(nstid)
			}
		}
		if on {
			d.Target.Memory.SetOff(nstid, false)
			delete(d.Off, nstid)
		}
	}
}

// startsAtOnce is for how many threads of a round it is looked up when they were started. With ten thousand new ones a second that
// would take a quarter of the time that there is for what they write.
const startsAtOnce = 64

// begin starts a part of the reel for the thread, under its name.
func (d *Collector) begin(k *thread) error {
	k.given = ""
	k.open.Forget()
	k.open.CountIn(&d.openCalls)
	now := ring.Ticks()
	start, err := uint64(0), error(nil)
	if d.starts++; d.starts <= startsAtOnce {
		start, err = process.StartTime(k.pid, k.tid)
	} else if process.ThreadGone(k.pid, k.tid) {
		err = unix.ESRCH
	}
	if err != nil {
		start = 0 // it has ended already
	} else {
		k.seen = now
	}
	if d.Tally != nil {
		k.counted = d.Tally.Thread()
		k.silence.Usual, k.silence.Least = d.Tally.Usual, ring.TicksOf(leastReach, d.TicksPerSecond)
		k.silence.Recorded = func(id uint32) bool { return !d.Switches.IsOff(id) }
	}
	d.awaits(k, start)
	k.ThreadSink, err = d.Sink.Thread(reel.Thread{TID: k.tid, Process: k.pid, StartTime: start, Name: k.name})
	return err
}

// end ends the part of the reel of a thread that has ended, if it has one: when the thread was last seen, and not now, which may be long
// after, and then all threads that come and go would seem to have been busy until now. Events that are later count for more.
func (k *thread) end() error { return k.endAt(k.seen) }

func (k *thread) endAt(tick uint64) error {
	if err := k.lastWords(); err != nil {
		return err
	}
	k.open.Forget()
	if k.counted != nil {
		k.counted.End(tick)
		k.counted = nil
	}
	if k.ThreadSink == nil {
		return nil
	}
	return k.End(tick)
}

// renamed goes by the thread's new name. A thread that is to be recorded no more, or again, has ended as far as the reel is concerned, or
// is another one: calls that were open, or whose entry wasn't recorded, are no others' then.
func (d *Collector) renamed(nstid int, k *thread) error {
	wanted := wants(d.Config.Threads, k.name)
	switch {
	case wanted && k.ThreadSink != nil && k.given != "":
		return nil
	case wanted && k.ThreadSink != nil:
		return k.Rename(k.name)
	case wanted:
		if err := d.begin(k); err != nil {
			return err
		}
		return d.drainer.On(nstid, k)
	case k.ThreadSink != nil:
		err := errors.Join(d.drainer.Off(nstid), k.endAt(ring.Ticks()))
		k.ThreadSink = nil
		return err
	}
	return nil
}

// ownName goes by the name that a thread has given itself since its name was last read, if stubs have seen that: the thread has ended, or
// there are no more stubs. One by which it wouldn't be recorded comes too late.
func (d *Collector) ownName(k *thread) error {
	own := d.Target.OwnName(k.nstid)
	if !own.IsThere() || own == k.own || own.Name == k.name || k.ThreadSink == nil || !wants(d.Config.Threads, own.Name) {
		return nil
	}
	k.name, k.own = own.Name, own
	if k.given != "" {
		return nil
	}
	return k.Rename(k.name)
}

// ownNames does that for all threads that weren't known to have ended.
func (d *Collector) ownNames() error {
	for _, k := range d.order {
		if k.over {
			continue
		}
		if err := d.ownName(k); err != nil {
			return err
		}
	}
	return nil
}
