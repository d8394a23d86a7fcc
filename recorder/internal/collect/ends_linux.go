package collect

import (
	"errors"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// ends ends the parts of the threads of the first process that have ended, so that others can have their chunks.
func (d *Collector) ends() error {
	own, began, looked := d.Target.PID(), time.Now(), ring.Ticks()
	kept := d.order[:0]
	var err error
	for _, k := range d.order {
		if k.over {
			continue
		}
		if k.pid == own && err == nil {
			if process.ThreadGone(k.pid, k.tid) {
				err = d.endOf(k)
				continue
			}
			k.seen = looked
		}
		kept = append(kept, k)
	}
	clear(d.order[len(kept):])
	d.order = kept
	d.endsTook = time.Since(began)
	return err
}

// endOf drains a thread that has ended, and ends its part.
func (d *Collector) endOf(k *thread) error {
	err := errors.Join(d.ownName(k), d.drainer.End(k.nstid), k.end())
	k.over = true
	delete(d.known, k.nstid)
	return err
}

// namesAtOnce is how many names are read in one go: some milliseconds.
const namesAtOnce = 256

// tasks looks whether the processes are still there, and which threads of forked children, and reads at most so many names. With whole it
// looks for all threads, in /proc.
func (d *Collector) tasks(whole bool, names int) error {
	own := d.Target.PID()
	looked := ring.Ticks()
	if !d.Processes.Look() {
		return process.ErrNoProcess
	}
	live := map[int]map[int]bool{}
	if there := d.Target.Runs(); whole || !there || len(d.Off) > 0 {
		live[own] = d.Processes.Threads(own)
		d.stillOff(live[own], whole)
	}
	if now := time.Now(); whole || now.Sub(d.last.waiting) >= waitingInterval {
		d.last.waiting = now
		if err := d.forgetWaiting(); err != nil {
			return err
		}
	}
	for _, k := range d.order {
		threads, listed := live[k.pid]
		if k.over || k.pid == own && !listed {
			continue // the next look for ends will tell
		}
		if !listed {
			threads = d.Processes.Threads(k.pid)
			live[k.pid] = threads
		}
		if !threads[k.tid] {
			if err := d.endOf(k); err != nil {
				return err
			}
			continue
		}
		k.seen = looked
	}
	return d.readNames(names)
}

// readNames reads the names of threads that are new, and of others that weren't looked at for long, each in its turn.
func (d *Collector) readNames(most int) error {
	now := time.Now()
	for range d.order {
		if most == 0 {
			break
		}
		if d.turn++; d.turn >= len(d.order) {
			d.turn = 0
		}
		k := d.order[d.turn]
		if k.over || k.fresh == 0 && now.Sub(k.read) < renameInterval {
			continue
		}
		most--
		k.fresh, k.read = max(0, k.fresh-1), now
		if err := d.rename(k.nstid, k); err != nil {
			return err
		}
	}
	return nil
}

func (d *Collector) rename(nstid int, k *thread) error {
	own := d.Target.OwnName(nstid) // before, so that what is read is no older
	name, err := process.ThreadName(k.pid, k.tid)
	if err != nil { // it has just ended: the next look will see that
		return nil
	}
	k.own = own
	if name == k.name {
		return nil
	}
	k.name = name
	return d.renamed(nstid, k)
}

// Threads that have registered and written nothing are mostly just about to. Of those that nobody sees some are kept for a while: they
// may be there in a namespace of their own.
const (
	maxUnseen       = 4096
	unseenTime      = time.Second
	waitingInterval = 500 * time.Millisecond
)

// forgetWaiting ends the threads that have registered, have written nothing and aren't there.
func (d *Collector) forgetWaiting() error {
	var gone []int
	unseen, now := 0, time.Now()
	d.drainer.Waiting(func(tid, pid int, since time.Time) {
		if d.Processes.Sees(pid, tid) {
			return
		}
		if unseen++; unseen > maxUnseen || now.Sub(since) > unseenTime {
			gone = append(gone, tid)
		}
	})
	for _, tid := range gone {
		if err := d.drainer.End(tid); err != nil {
			return err
		}
	}
	return nil
}
