package recorder

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/glob"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// wants says whether a thread of that name is to be recorded.
func (l *Less) wants(name string) bool {
	return len(l.Threads) == 0 || glob.Any(l.Threads, nil, []string{name})
}

// keepOff switches the threads off that there are and that aren't to be recorded, before the gates open: so they take no room in the
// rings. Threads that come later are switched off when they have written something.
func (r *recording) keepOff() error {
	if len(r.opt.Less.Threads) == 0 {
		return nil
	}
	threads, err := r.s.Process.Threads()
	if err != nil {
		return err
	}
	r.keptOff = map[int]int{}
	for _, t := range threads {
		if !r.opt.Less.wants(t.Name) && t.NSTID < ring.MaxTID {
			r.s.Memory.SetOff(t.NSTID, true)
			r.keptOff[t.NSTID] = t.TID
		}
	}
	return nil
}

// stillOff looks whether threads that were kept off have ended, or have got a name by which they are to be recorded.
func (d *drain) stillOff(live map[int]bool, names bool) {
	for nstid, tid := range d.r.keptOff {
		on := !live[tid]
		if !on && names {
			name, err := process.ThreadName(d.r.s.Process.Pid(), tid)
			on = err == nil && d.r.opt.Less.wants(name)
			if on {
				d.drainer.Late(nstid)
			}
		}
		if on {
			d.r.s.Memory.SetOff(nstid, false)
			delete(d.r.keptOff, nstid)
		}
	}
}

// startsAtOnce is for how many threads of a round it is looked up when they were started. With ten thousand new ones a second that
// would take a quarter of the time that there is for what they write.
const startsAtOnce = 64

// begin starts a part of the reel for the thread, under its name.
func (d *drain) begin(k *known) error {
	k.open.forget()
	k.open.all = &d.openCalls
	now := ring.Ticks()
	start, err := uint64(0), error(nil)
	if d.starts++; d.starts <= startsAtOnce {
		start, err = process.StartTime(k.pid, k.tid)
	} else if threadGone(k.pid, k.tid) {
		err = unix.ESRCH
	}
	if err != nil {
		start = 0 // it has ended already
	} else {
		k.seen = now
	}
	k.DestinationThread, err = d.r.to.Thread(reel.Thread{TID: k.tid, Process: k.pid, StartTime: start, Name: k.name})
	return err
}

// end ends the part of the reel of a thread that has ended, if it has one: when the thread was last seen, and not now, which may be long
// after, and then all threads that come and go would seem to have been busy until now. Events that are later count for more.
func (k *known) end() error { return k.endAt(k.seen) }

func (k *known) endAt(tick uint64) error {
	k.open.forget()
	if k.DestinationThread == nil {
		return nil
	}
	return k.End(tick)
}

// renamed goes by the thread's new name. A thread that is to be recorded no more, or again, has ended as far as the reel is concerned, or
// is another one: calls that were open, or whose entry wasn't recorded, are no others' then.
func (d *drain) renamed(nstid int, k *known) error {
	wanted := d.r.opt.Less.wants(k.name)
	switch {
	case wanted && k.DestinationThread != nil:
		return k.Rename(k.name)
	case wanted:
		if err := d.begin(k); err != nil {
			return err
		}
		return d.drainer.On(nstid, k)
	case k.DestinationThread != nil:
		err := errors.Join(d.drainer.Off(nstid), k.endAt(ring.Ticks()))
		k.DestinationThread = nil
		return err
	}
	return nil
}

// ownName goes by the name that a thread has given itself since its name was last read, if stubs have seen that: the thread has ended, or
// there are no more stubs. One by which it wouldn't be recorded comes too late.
func (d *drain) ownName(k *known) error {
	own := d.r.s.Memory.OwnName(k.nstid)
	if !own.IsThere() || own == k.own || own.Name == k.name || k.DestinationThread == nil || !d.r.opt.Less.wants(own.Name) {
		return nil
	}
	k.name, k.own = own.Name, own
	return k.Rename(k.name)
}

// ownNames does that for all threads that weren't known to have ended.
func (d *drain) ownNames() error {
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
