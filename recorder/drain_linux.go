package recorder

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/capture"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/recorder/internal/tables"
)

// How often things are done while recording.
const (
	// maxRest lets events gather between rounds, since each waking costs some 10 µs. minRest is for small rings.
	maxRest = 10 * time.Millisecond
	minRest = 200 * time.Microsecond
	// flushInterval bounds what is lost of the reel if we are killed.
	flushInterval = 200 * time.Millisecond
	// tasksInterval is how soon a thread's name is noticed, and the end of the process, or of a thread of a forked child.
	tasksInterval = 20 * time.Millisecond
	// endsInterval is how soon a thread's end is, or later if it takes longer than a tenth of that to look for all.
	endsInterval = 2 * time.Millisecond
	endsShare    = 10
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
	// openCalls is how many calls are in the threads' lists of open ones.
	openCalls int
	order     []*known // as they were met; those that are over are taken out when ends are looked for
	starts    int      // threads of this round whose part was begun
	turn      int      // from where in order names are read next
	endsTook  time.Duration
	last      struct{ flush, tasks, ends, waiting, whole, clock time.Time }
}

// known is a thread of the recording.
type known struct {
	DestinationThread // nil while the thread is off
	functions         tables.Functions
	pid               int  // of its process
	tid               int  // as seen from here
	nstid             int  // as the target sees it
	over              bool // it has ended
	name              string
	read              time.Time    // when the name was last read
	fresh             int          // readings of the name still to be made soon: threads are named just after they start
	own               ring.OwnName // as it was when the name was last read
	captures          *capture.Set
	told              capture.Told // see recording
	to                Destination
	switches          *switches
	open              openCalls
	// seen is the last tick at which the thread was surely there, 0 if it never was looked for in time.
	seen uint64
}

// unread is known.fresh at first.
const unread = 8

func (r *recording) newDrain() *drain {
	d := &drain{r: r, started: time.Now(), known: map[int]*known{}, making: newCompiler(r.s)}
	st, err := r.s.Process.Status()
	d.sameNS = err == nil && len(st.NSPIDs) <= 1
	d.drainer = ring.NewDrainer(r.s.Memory, d.open)
	d.drainer.Ran, d.drainer.Min, d.drainer.TakesBack = d.ran, r.set.Min, r.s.Runtime.Min
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
	k := &known{pid: d.r.s.Process.Pid(), tid: nstid, nstid: nstid, name: name, fresh: unread, functions: d.r.functions, captures: d.r.captures, told: d.r.told, to: d.r.to, switches: d.r.switches}
	if d.family != nil {
		k.pid = d.family.processOf(nspid)
	}
	if !d.sameNS || d.family != nil && d.family.isNested(k.pid) {
		k.tid = d.outerTID(k.pid, nstid)
	}
	if k.own = d.r.s.Memory.OwnName(nstid); k.own.IsThere() { // since it registered
		k.name = k.own.Name
	}
	if len(d.r.opt.Less.Threads) > 0 { // threads name themselves just after they start
		if now, err := process.ThreadName(k.pid, k.tid); err == nil {
			k.name = now
		}
	}
	d.known[nstid] = k
	d.order = append(d.order, k)
	if !d.r.opt.Less.wants(k.name) {
		return nil, nil
	}
	return k, d.begin(k)
}

// outerTID translates a thread ID from the target's PID namespace.
func (d *drain) outerTID(pid, nstid int) int {
	if pid != d.r.s.Process.Pid() {
		return d.family.outerTID(pid, nstid)
	}
	return outerTID(d.r.s.Process, nstid)
}

func outerTID(p *process.Process, nstid int) int {
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
		d.starts = 0
		n, err := d.drainer.Round()
		if err == nil {
			d.r.switches.rounds.end(d, n)
			err = d.r.to.Round(began)
		}
		if err != nil {
			return err
		}
		if silent := time.Since(last); silent > longSilence && !d.r.s.Memory.Sandboxed() {
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
		if ctx.Err() != nil || d.r.s.Memory.Sandboxed() {
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
	s.Mu.Lock()
	arenas := slices.Clone(s.Arenas)
	s.Mu.Unlock()
	for _, a := range arenas {
		if _, err := s.Process.ReadAt(word[:], a.Gate()); err != nil {
			return nil // it has ended, which housekeeping notices
		}
		if stub.IsOpen(word) {
			continue
		}
		d.r.notice("callreel stood still for %d s, so the process went on without recording: its calls of that time are missing, and not counted", int(silent.Seconds()))
		if err := s.ReopenGates(); err != nil && s.Process.Alive() {
			return err
		}
		if s.Memory.Sandboxed() { // just then
			return s.CloseGates()
		}
		return nil
	}
	return nil
}

// longestRest is how long the ring surely lasts when the target suddenly calls as much as a core can.
func (d *drain) longestRest() time.Duration {
	const fastest = 160e6 // events a second and core, with nothing but calls and no clock
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
	if due(&d.last.ends, max(endsInterval, endsShare*d.endsTook)) {
		if err := d.ends(); err != nil {
			return err
		}
	}
	if due(&d.last.tasks, tasksInterval) {
		if err := d.tasks(due(&d.last.whole, renameInterval), namesAtOnce); err != nil {
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

// firstTasks lists the threads of the process that recording began with, nil when it has ended or replaced its program: with that
// the probes are gone.
func (d *drain) firstTasks() map[int]bool {
	if !d.firstLives() {
		return nil
	}
	return tasksOf(d.r.s.Process.Pid())
}

// firstLives says whether that process hasn't.
func (d *drain) firstLives() bool {
	if !d.r.s.Process.Alive() {
		return false
	}
	var word [8]byte
	_, err := d.r.s.Process.ReadAt(word[:], d.r.s.Runtime.Ring)
	return !errors.Is(err, process.ErrExec)
}

// lastNames reads the names of threads that have named themselves since the last look.
func (d *drain) lastNames() error {
	if err := d.tasks(true, math.MaxInt); !errors.Is(err, process.ErrNoProcess) {
		return err
	}
	return nil
}

// finish drains what is left when nobody writes any more. The recording's end is when the gates were closed: draining may take long. A
// process that ended by itself did so a little before that was noticed, which is not the end of its unfinished calls, then.
func (d *drain) finish(ended bool) error {
	at := d.r.s.GatesClosed
	if !ended {
		d.drainer.EndsAt = at.Tick
	}
	err := d.ownNames()
	err = errors.Join(err, d.drainer.Finish())
	for _, k := range d.known {
		if k.fresh == unread && !ended && k.DestinationThread != nil { // first seen just now
			if name, e := process.ThreadName(k.pid, k.tid); e == nil {
				err = errors.Join(err, k.Rename(name))
			}
		}
	}
	if d.family != nil && ended { // the recordings of other processes may go on
		for _, k := range d.known {
			err = errors.Join(err, k.end())
		}
	}
	if !ended && at.Tick != 0 {
		if e := d.r.to.ClockPair(at.Tick, at.UnixNS); err == nil {
			err = e
		}
	}
	d.progress(time.Now())
	return err
}
