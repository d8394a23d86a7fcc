package recorder

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// wants says whether a thread of that name is to be recorded.
func (l *Less) wants(name string) bool {
	return len(l.Threads) == 0 || anyGlob(l.Threads, make([]bool, len(l.Threads)), []string{name})
}

// keepOff switches the threads off that there are and that aren't to be recorded, before the gates open: so they take no room in the
// rings. Threads that come later are switched off when they have written something.
func (r *recording) keepOff() error {
	if len(r.opt.Less.Threads) == 0 {
		return nil
	}
	threads, err := r.s.p.Threads()
	if err != nil {
		return err
	}
	r.keptOff = map[int]int{}
	for _, t := range threads {
		if !r.opt.Less.wants(t.Name) && t.NSTID < ring.MaxTID {
			r.s.memory.SetOff(t.NSTID, true)
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
			name, err := threadName(d.r.s.p.Pid(), tid)
			on = err == nil && d.r.opt.Less.wants(name)
			if on {
				d.drainer.Late(nstid)
			}
		}
		if on {
			d.r.s.memory.SetOff(nstid, false)
			delete(d.r.keptOff, nstid)
		}
	}
}

// threadName reads a thread's name.
func threadName(pid, tid int) (string, error) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "task", strconv.Itoa(tid), "comm"))
	return strings.TrimSuffix(string(b), "\n"), err
}

// begin starts a part of the reel for the thread, under its name.
func (d *drain) begin(k *known) error {
	k.open = openCalls{}
	start, err := startTimeOf(strconv.Itoa(k.pid) + "/task/" + strconv.Itoa(k.tid))
	if err != nil {
		start = 0 // it has ended already
	}
	k.DestinationThread, err = d.r.to.Thread(reel.Thread{TID: k.tid, Process: k.pid, StartTime: start, Name: k.name})
	return err
}

// end ends the thread's part of the reel, if it has one.
func (k *known) end() error {
	if k.DestinationThread == nil {
		return nil
	}
	return k.End(ring.Ticks())
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
		err := errors.Join(d.drainer.Off(nstid), k.end())
		k.DestinationThread = nil
		return err
	}
	return nil
}
