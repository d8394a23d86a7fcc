package scheduling

import (
	"errors"
	"time"

	"github.com/callreel/callreel/internal/glob"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// How threads get into a reel that never call a traced function.
const (
	// silentTime is how long a thread has words and no calls before it gets a part of the reel for its words alone.
	silentTime = 100 * time.Millisecond
	// maxSilent bounds how many such threads there are in a reel: it is the target that starts them.
	maxSilent = 1 << 16
	// maxPending bounds what is kept of a thread that isn't in the reel yet, maxAllPending what is of all.
	maxPending    = 1 << 12
	maxAllPending = 1 << 18
	// firstLooks is of how many threads in a round the name is read that are new, looksAtOnce of how many of the others each silentTime, and
	// renameInterval how soon it is read again.
	firstLooks     = 32
	firstNames     = 1 << 12 // when recording begins
	looksAtOnce    = 256
	renameInterval = time.Second
)

// Reel is what goes into a reel that is written all the time: who is one of its threads, and what the scheduler did with them.
//
// Who is a thread is told twice: by the rings, when it calls a traced function, and by the scheduler. Neither is first: a thread may run for an
// hour before it calls, and one that lives for a millisecond has called and ended before anybody looks. So both come here, and get the
// same thread of the reel.
type Reel struct {
	*Watch
	w       *reel.Writer
	pid     int          // of the process that is recorded, or of the first of them
	globs   []string     // of threads' names; empty for all
	known   map[int]bool // processes that are recorded
	touched []*life      // that have something to be written
	silent  []*life      // that have had words and aren't in the reel for their calls
	pending int
	made    int       // threads of the reel for words alone
	looks   int       // names that may still be read in this round
	placed  time.Time // when threads without calls were last looked at
	last    bool      // nothing follows

	unsettled []*life // with ended
	join      joining
}

// part is what a life has in a reel.
type part struct {
	w       *reel.ThreadWriter // nil while it isn't in the reel
	called  bool               // it is for its calls
	name    string
	start   uint64 // clock ticks since boot, 0 if it isn't known
	looked  time.Time
	pending []reel.SchedEvent
	waits   []reel.Wait
	ended   []endedWait     // that are to be settled, and then are waits
	calls   []waitCall      // that those may have been in
	last    reel.SchedEvent // by which its state was told last
	ran     bool            // there is more to be told than that it is there
	touched bool
	listed  bool // among the silent
	open    bool // among the unsettled
}

func (w *Watch) newReel(to *reel.Writer, globs []string, pid int) *Reel {
	return &Reel{Watch: w, w: to, pid: pid, globs: globs, known: map[int]bool{pid: true}, join: w.newJoining()}
}

// Into puts what happens from a tick on into a reel: of the threads whose names one of the globs matches, or of all if there are none.
func (w *Watch) Into(to *reel.Writer, globs []string, from uint64, pid int) (*Reel, error) {
	r := w.newReel(to, globs, pid)
	if err := to.Scheduling(w.about); err != nil {
		return nil, err
	}
	w.start(pid, from, r, drainInterval)
	r.meet(pid)
	return r, nil
}

// meet reads the names of the threads that a process has.
func (r *Reel) meet(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looks = firstNames
	now := time.Now()
	for who, list := range r.lives.by {
		if k := list[len(list)-1]; who.pid == pid && k.part.looked.IsZero() {
			r.look(k, now)
		}
	}
}

// Add says that the recording of another process has just begun, which is watched as a child already.
func (r *Reel) Add(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[pid] = true
	delete(r.cuts, pid)
	r.beginSums(pid)
}

// SetThreads changes the globs of threads' names.
func (r *Reel) SetThreads(globs []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.globs = globs
	for _, k := range r.silent {
		k.part.looked = time.Time{}
	}
}

func (r *Reel) wants(name string) bool {
	return len(r.globs) == 0 || glob.Any(r.globs, nil, []string{name})
}

func (r *Reel) word(k *life, e reel.SchedEvent) {
	p := &k.part
	p.pending = append(p.pending, e)
	r.pending++
	if e.Kind != reel.SchedMinorFault && e.Kind != reel.SchedMajorFault {
		p.last = e
		p.ran = p.ran || e.Kind != reel.SchedWoken && e.Kind != reel.SchedPreempted
	}
	r.touch(k)
}

func (r *Reel) early(k *life) {
	r.pending -= len(k.part.pending)
	k.part.pending, k.part.waits, k.part.ended = nil, nil, nil
}

func (r *Reel) touch(k *life) {
	if !k.part.touched {
		k.part.touched = true
		r.touched = append(r.touched, k)
	}
}

// drained writes what has come.
func (r *Reel) drained(now time.Time, bound uint64) error {
	r.looks = firstLooks
	r.settle(bound)
	for _, k := range r.touched {
		p := &k.part
		p.touched = false
		if p.w != nil {
			if err := r.write(k); err != nil {
				return err
			}
			continue
		}
		if !p.listed {
			p.listed = true
			r.silent = append(r.silent, k)
			r.look(k, now)
		}
		if len(p.pending) > maxPending || r.pending > maxAllPending {
			r.shorten(k)
		}
	}
	clear(r.touched)
	r.touched = r.touched[:0]
	if now.Sub(r.placed) >= silentTime {
		r.placed, r.looks = now, looksAtOnce
		if err := r.place(now, bound); err != nil {
			return err
		}
	}
	r.w.SchedKnown(bound)
	return nil
}

// write writes what waits of a thread that is in the reel.
func (r *Reel) write(k *life) error {
	p := &k.part
	err := p.w.Sched(p.pending)
	r.pending -= len(p.pending)
	p.pending = p.pending[:0]
	if cap(p.pending) > maxPending {
		p.pending = nil
	}
	if len(p.waits) > 0 {
		for i := range p.waits {
			p.waits[i].Object = r.objects.named(p.waits[i].Object)
		}
		err = errors.Join(err, p.w.Waits(p.waits))
		p.waits = p.waits[:0]
	}
	return err
}

// shorten keeps only what a thread does now.
func (r *Reel) shorten(k *life) {
	p := &k.part
	r.pending -= len(p.pending)
	p.pending, p.waits, p.ended = p.pending[:0], nil, nil
	if p.last.Kind != 0 {
		p.pending = append(p.pending, p.last)
		r.pending++
	}
}

// look reads the name of a thread, and when it was started. It returns false if there have been too many in this round.
func (r *Reel) look(k *life, now time.Time) bool {
	p := &k.part
	if r.looks == 0 && !r.last {
		return false
	}
	r.looks = max(0, r.looks-1)
	p.looked = now
	if name, err := process.ThreadName(k.pid, k.tid); err == nil && k.ended == 0 {
		p.name = name
	}
	if p.start == 0 && k.ended == 0 {
		p.start, _ = process.StartTime(k.pid, k.tid) // 0 for one that has ended
	}
	return true
}

// place gives threads without calls their part of the reel, and goes by their names.
func (r *Reel) place(now time.Time, bound uint64) error {
	kept := r.silent[:0]
	var errs error
	for _, k := range r.silent {
		stays, err := r.placeOne(k, now, bound)
		errs = errors.Join(errs, err)
		if stays {
			kept = append(kept, k)
		} else {
			k.part.listed = false
		}
	}
	clear(r.silent[len(kept):])
	r.silent = kept
	return errs
}

// placeOne does that for one. It returns false for one that needs it no more.
func (r *Reel) placeOne(k *life, now time.Time, bound uint64) (stays bool, err error) {
	p := &k.part
	switch {
	case p.called:
		return false, nil
	case p.w != nil && k.ended != 0:
		return false, p.w.End(k.ended)
	case now.Sub(k.met) < silentTime || !r.known[k.pid]:
		return k.ended == 0 || now.Sub(k.noted) < endedTime, nil
	case p.w != nil:
		return r.renamed(k, now, bound)
	}
	if p.looked.IsZero() || k.ended == 0 && now.Sub(p.looked) >= renameInterval {
		if !r.look(k, now) {
			return true, nil
		}
	}
	switch {
	case !r.wants(p.name) || r.made >= maxSilent:
		r.shorten(k)
		return k.ended == 0, nil
	case len(p.pending) == 0 || !p.ran && r.last:
		return k.ended == 0, nil
	}
	r.made++
	err = r.begin(k, reel.Thread{TID: k.tid, Process: k.pid, StartTime: p.start, Name: p.name})
	if err == nil && k.ended != 0 {
		return false, p.w.End(k.ended)
	}
	return true, err
}

// begin gives a thread its part of the reel.
func (r *Reel) begin(k *life, about reel.Thread) (err error) {
	p := &k.part
	if p.w, err = r.w.Thread(about); err != nil {
		return err
	}
	return r.write(k)
}

// renamed goes by the name of a thread without calls.
func (r *Reel) renamed(k *life, now time.Time, bound uint64) (stays bool, err error) {
	p := &k.part
	before := p.name
	if now.Sub(p.looked) < renameInterval || !r.look(k, now) || p.name == before && r.wants(p.name) {
		return true, nil
	}
	if r.wants(p.name) {
		return true, p.w.Rename(p.name)
	}
	// It has ended as far as the reel is concerned; if it is wanted again it is another one.
	r.succeed(k, bound, true)
	return false, p.w.End(bound)
}

// succeed ends a life, as far as the reel is concerned. With more the thread goes on without being in the reel, and may come into it again.
func (r *Reel) succeed(k *life, tick uint64, more bool) {
	r.lives.end(k, tick, time.Now())
	if more {
		r.lives.add(k.who, k.ended+1).part.last = k.part.last
	}
}

func (r *Reel) forget(k *life) bool {
	r.pending -= len(k.part.pending)
	k.part.pending, k.part.calls = nil, nil
	if k.pid == k.tid && k.pid != r.pid {
		delete(r.known, k.pid)
		delete(r.join.enders, k.pid)
	}
	return true
}

// finish writes all that is left, and the sums.
func (r *Reel) finish(bound uint64) error {
	r.last = true
	err := r.drained(time.Now().Add(silentTime), bound)
	for _, list := range r.lives.by {
		for _, k := range list {
			if s, known := k.base.since(); known && k.part.w != nil {
				err = errors.Join(err, k.part.w.SchedSums(s))
			}
		}
	}
	return err
}

// Thread begins with a thread that calls, or returns the one that is there for its words.
func (r *Reel) Thread(about reel.Thread) (*Thread, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[about.Process] = true
	t := &Thread{r: r, about: about}
	w := who{about.Process, about.TID}
	// Where the ID was another thread's a moment ago the first event tells whose it is.
	if list := r.lives.by[w]; len(list) > 1 || len(list) == 1 && list[0].ended != 0 {
		return t, nil
	}
	return t, t.bind(ring.Ticks())
}
