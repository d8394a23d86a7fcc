package recorder

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// How often things are done while recording.
const (
	// maxRest lets events gather between rounds, since each waking costs some 10 µs. minRest is for small rings.
	maxRest = 10 * time.Millisecond
	minRest = 200 * time.Microsecond
	// flushInterval bounds what is lost of the reel if we are killed.
	flushInterval = 200 * time.Millisecond
	// tasksInterval is how soon a thread's end is noticed, or its name.
	tasksInterval = 20 * time.Millisecond
	// renameInterval is how often names of threads that are long known are read again.
	renameInterval = time.Second
	clockInterval  = time.Second
)

// drain is the recording's loop.
type drain struct {
	r       *recording
	drainer *ring.Drainer
	making  *compiler
	started time.Time
	known   map[int]*known // by the thread ID as the target sees it
	sameNS  bool
	family  *family // nil if children aren't followed
	last    struct{ flush, tasks, rename, clock time.Time }
}

// known is a thread of the recording.
type known struct {
	DestinationThread            // nil while the thread is off
	names             *lateNames // nil if all functions are in the reel's table already
	pid               int        // of its process
	tid               int        // as seen from here
	name              string
	fresh             int // readings of the name still to be made soon: threads are named just after they start
	captures          *captures
	to                Destination
	switches          *switches
	open              openCalls
}

// unread is known.fresh at first.
const unread = 8

func (r *recording) newDrain() *drain {
	d := &drain{r: r, started: time.Now(), known: map[int]*known{}, making: r.s.makeProbes()}
	st, err := r.s.p.Status()
	d.sameNS = err == nil && len(st.NSPIDs) <= 1
	d.drainer = ring.NewDrainer(r.s.memory, d.open)
	d.drainer.Ran, d.drainer.Min = d.ran, r.set.Min
	if r.tree != nil {
		d.family = d.newFamily()
	}
	return d
}

// ran is how much processor time a thread has used, by its ID in the target's namespace.
func (d *drain) ran(nstid int) (time.Duration, bool) {
	k := d.known[nstid]
	if k == nil {
		return 0, false
	}
	return process.ThreadRan(k.pid, k.tid)
}

// open starts a thread's part of the reel.
func (d *drain) open(nstid, nspid int, name string) (ring.Sink, error) {
	k := &known{pid: d.r.s.p.Pid(), tid: nstid, name: name, fresh: unread, names: d.r.names, captures: d.r.captures, to: d.r.to, switches: d.r.switches}
	if d.family != nil {
		k.pid = d.family.processOf(nspid)
	}
	if !d.sameNS {
		k.tid = d.outerTID(k.pid, nstid)
	}
	if len(d.r.opt.Less.Threads) > 0 { // threads name themselves just after they start
		if now, err := threadName(k.pid, k.tid); err == nil {
			k.name = now
		}
	}
	d.known[nstid] = k
	if !d.r.opt.Less.wants(k.name) {
		return nil, nil
	}
	return k, d.begin(k)
}

// outerTID translates a thread ID from the target's PID namespace.
func (d *drain) outerTID(pid, nstid int) int {
	p := d.r.s.p
	if pid != p.Pid() {
		if p = d.family.members[pid].p; p == nil {
			return nstid
		}
	}
	threads, err := p.Threads()
	if err == nil {
		for _, t := range threads {
			if t.NSTID == nstid {
				return t.TID
			}
		}
	}
	return nstid
}

// loop drains until the context ends, the process does, or the reel can't be written.
func (d *drain) loop(ctx context.Context) error {
	longest := d.longestRest()
	fill := ring.ChunkEvents * d.r.set.Chunks / 8 // how much may gather between rounds
	last := time.Now()
	for {
		d.making.round()
		began := ring.Ticks()
		d.r.switches.rounds.begin()
		n, err := d.drainer.Round()
		if err == nil {
			d.r.switches.rounds.end(d, n)
			err = d.r.to.Round(began)
		}
		if err != nil {
			return err
		}
		if silent := time.Since(last); silent > longSilence && !d.r.s.memory.Sandboxed() {
			if err := d.reopen(silent); err != nil {
				return err
			}
		}
		if err := d.housekeeping(); err != nil {
			if errors.Is(err, process.ErrNoProcess) {
				return nil
			}
			return err
		}
		if ctx.Err() != nil || d.r.s.memory.Sandboxed() {
			return d.lastNames()
		}
		now := time.Now()
		elapsed := now.Sub(last)
		last = now
		rest := longest
		if n > 0 {
			rest = min(rest, elapsed*time.Duration(fill)/time.Duration(n))
		}
		if n >= fill {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(max(rest, minRest)):
		}
	}
}

// longSilence is after how much of it threads may have closed the gate: somewhat less than ring.HdrCloseLimit says.
const longSilence = 20 * time.Second

// reopen opens gates that the target's threads have closed, since we were stopped for so long, by Ctrl-Z or SIGSTOP.
func (d *drain) reopen(silent time.Duration) error {
	s := d.r.s
	var word [8]byte
	s.mu.Lock()
	arenas := slices.Clone(s.arenas)
	s.mu.Unlock()
	for _, a := range arenas {
		if _, err := s.p.ReadAt(word[:], a.gate()); err != nil {
			return nil // it has ended, which housekeeping notices
		}
		if word != [8]byte{} {
			continue
		}
		d.r.notice("callreel stood still for %d s, so the process went on without recording: its calls of that time are missing, and not counted", int(silent.Seconds()))
		if err := s.gate(s.rt.Ring + ring.SlotsOff); err != nil && s.p.Alive() {
			return err
		}
		if s.memory.Sandboxed() { // just then
			return s.gate(0)
		}
		return nil
	}
	return nil
}

// longestRest is how long the ring surely lasts when the target suddenly calls as much as a core can.
func (d *drain) longestRest() time.Duration {
	const fastest = 40e6 // events a second and core, with nothing but calls
	events := float64(ring.ChunkEvents * d.r.set.Chunks / 4)
	return min(maxRest, time.Duration(events/fastest*float64(time.Second)))
}

// housekeeping does what is due.
func (d *drain) housekeeping() error {
	now := time.Now()
	due := func(last *time.Time, every time.Duration) bool {
		if now.Sub(*last) < every {
			return false
		}
		*last = now
		return true
	}
	if due(&d.last.tasks, tasksInterval) {
		if err := d.tasks(due(&d.last.rename, renameInterval)); err != nil {
			return err
		}
	}
	if due(&d.last.clock, clockInterval) {
		if err := d.r.to.ClockPair(ring.Ticks(), now.UnixNano()); err != nil {
			return err
		}
	}
	if due(&d.last.flush, flushInterval) {
		if err := d.r.to.Flush(); err != nil {
			return err
		}
		d.progress(now)
	}
	return nil
}

func (d *drain) progress(now time.Time) {
	if d.r.opt.Progress == nil {
		return
	}
	t := d.drainer.Totals()
	d.r.noticeMu.Lock()
	defer d.r.noticeMu.Unlock()
	d.r.opt.Progress(Progress{Elapsed: now.Sub(d.started), Calls: t.Entries, Dropped: t.Dropped, Bytes: d.r.written(), Threads: t.Threads})
}

// tasks looks which threads there still are, ends the others' parts and reads names.
func (d *drain) tasks(all bool) error {
	own := d.r.s.p.Pid()
	live := map[int]map[int]bool{own: d.firstTasks()}
	if d.family != nil {
		if !d.family.look(live[own] != nil) {
			return process.ErrNoProcess
		}
	} else if live[own] == nil {
		return process.ErrNoProcess
	}
	d.stillOff(live[own], all)
	for nstid, k := range d.known {
		threads, seen := live[k.pid]
		if !seen {
			threads = d.family.threadsOf(k.pid)
			live[k.pid] = threads
		}
		if !threads[k.tid] {
			if err := errors.Join(d.drainer.End(nstid), k.end()); err != nil {
				return err
			}
			delete(d.known, nstid)
			continue
		}
		if k.fresh > 0 || all {
			k.fresh = max(0, k.fresh-1)
			if err := d.rename(nstid, k); err != nil {
				return err
			}
		}
	}
	return nil
}

// firstTasks lists the threads of the process that recording began with, nil when it has ended or replaced its program: with that
// the probes are gone.
func (d *drain) firstTasks() map[int]bool {
	live := tasksOf(d.r.s.p.Pid())
	if live == nil || !d.r.s.p.Alive() {
		return nil
	}
	var word [8]byte
	if _, err := d.r.s.p.ReadAt(word[:], d.r.s.rt.Ring); errors.Is(err, process.ErrExec) {
		return nil
	}
	return live
}

// lastNames reads the names of threads that have named themselves since the last look.
func (d *drain) lastNames() error {
	if err := d.tasks(true); !errors.Is(err, process.ErrNoProcess) {
		return err
	}
	return nil
}

func (d *drain) rename(nstid int, k *known) error {
	name, err := threadName(k.pid, k.tid)
	if err != nil || name == k.name { // it has just ended: the next look will see that
		return nil
	}
	k.name = name
	return d.renamed(nstid, k)
}

// finish drains what is left when nobody writes any more. A process that ended by itself did so a little before now, so
// now is not the end of its unfinished calls.
func (d *drain) finish(ended bool) error {
	err := d.drainer.Finish()
	for _, k := range d.known {
		if k.fresh == unread && !ended && k.DestinationThread != nil { // first seen just now
			if name, e := threadName(k.pid, k.tid); e == nil {
				err = errors.Join(err, k.Rename(name))
			}
		}
	}
	if d.family != nil && ended { // the recordings of other processes may go on
		for _, k := range d.known {
			err = errors.Join(err, k.end())
		}
	}
	if !ended {
		if e := d.r.to.ClockPair(ring.Ticks(), time.Now().UnixNano()); err == nil {
			err = e
		}
	}
	d.progress(time.Now())
	return err
}
