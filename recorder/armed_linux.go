package recorder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/outfile"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// How often an armed recording looks around. A trigger wakes it at once.
const (
	longestTick = 200 * time.Millisecond
	makingTick  = 20 * time.Millisecond
	// lookInterval is how soon a thread's end is noticed, for each hundred threads that there are: only what they had last is kept
	// meanwhile.
	lookInterval = 500 * time.Millisecond
	// pairInterval is how often both clocks are read: between two readings times are exact.
	pairInterval = 10 * time.Second
	maxPairs     = 64
)

// Triggers may make some dumps at once, and then one each dumpEvery: what they ask for beyond that is counted.
const (
	dumpsAtOnce = 5
	dumpEvery   = 500 * time.Millisecond
)

// armed is the loop of a recording that keeps the last moments only.
type armed struct {
	r       *recording
	o       *Arming
	making  *compiler
	d       *drain // for what it knows of threads
	keeper  *ring.Keeper
	watches *ring.Watches
	threads map[int]*heldThread // by thread ID, as the target sees it
	ended   []*heldThread       // that may have events in the rings
	gone    int                 // threads that were forgotten
	// mostEnded is at how many ended ones it is looked which of them have.
	mostEnded int
	pairs     []reel.ClockPair
	gaps      []gap // of the past in which the rings were frozen

	requests chan DumpRequest
	changes  chan func()
	over     chan struct{} // closed when the loop has ended

	began   uint64 // when it was on, in TSC ticks
	freezer uint32 // the last firing that has frozen the rings, of those that were looked at
	seen    uint32 // firings that were looked at
	thawed  uint64 // when the rings were last let go
	// frozenAt is when a trigger last froze them, of those that were looked at.
	frozenAt uint64
	tokens   float64
	filled   time.Time
	number   int                    // of the last dump
	old      map[string]fs.FileInfo // dumps that were there before, and may be replaced
	last     struct{ look, pair, rename time.Time }
}

// heldThread is a thread whose events the rings hold.
type heldThread struct {
	tid, pid, nstid int
	start           uint64 // clock ticks since boot
	name            string
	own             ring.OwnName // as it was when the name was last read
	seen            uint64       // TSC, when it was last surely there
	end             uint64       // TSC, when it was noticed that it had ended; 0 while it lives
	dropped         uint64       // entries, up to when the rings were last let go
}

// gap is a time in which the rings were frozen.
type gap struct {
	from, to uint64
	tids     []int // that have dropped calls then
}

func (r *recording) newArmed(d *drain) *armed {
	o := *r.opt.Armed
	a := &armed{r: r, o: &o, making: d.making, d: d, keeper: ring.NewKeeper(r.s.Memory), threads: map[int]*heldThread{},
		mostEnded: manyEnded, tokens: dumpsAtOnce, filled: time.Now(), began: r.began, requests: make(chan DumpRequest), changes: make(chan func()), over: make(chan struct{})}
	a.watches, _ = r.s.Memory.WatchesAt(r.s.Watches) // which armWatches has found to be there
	a.pair()
	return a
}

// armWatches writes down what stubs are to look at.
func (r *recording) armWatches() error {
	if r.opt.Armed == nil {
		return nil
	}
	w, err := r.s.Memory.WatchesAt(r.s.Watches)
	if err != nil {
		return err
	}
	r.triggers.WriteTo(w, r.set.TicksPerSecond)
	w.Arm(true)
	return nil
}

// checkFolder finds out, before the process is touched, whether dumps could be made.
func (r *recording) checkFolder() error {
	err := outfile.CheckFolder(r.opt.Output)
	switch {
	case errors.Is(err, unix.ENOTDIR):
		return fmt.Errorf("callreel: %s: %w, and no folder for dumps; choose another name with -o", r.opt.Output, fs.ErrExist)
	case err != nil:
		return fmt.Errorf("callreel: no dumps can be made in %s: %w", r.opt.Output, err)
	}
	return nil
}

// makeFolder makes the folder of the dumps. Who waits for it to appear may count on recording being on from then.
func (r *recording) makeFolder() error {
	d, err := r.folder()
	if err != nil {
		return fmt.Errorf("callreel: the dumps have no place: %w", err)
	}
	return d.Close()
}

// folder opens the folder of the dumps, which is made again if somebody has removed it.
func (r *recording) folder() (*outfile.Folder, error) {
	return outfile.MakeFolder(r.opt.Output, outfile.FolderMode(r.opt.Mode))
}

// dumpName is the name of a dump.
func dumpName(number int) string { return fmt.Sprintf("slow-%04d.reel", number) }

// dumpsThere says which dumps the folder has, and the highest number of them.
func (r *recording) dumpsThere() (dumps map[string]fs.FileInfo, last int, err error) {
	d, err := r.folder()
	if err != nil {
		return nil, 0, err
	}
	names, err := d.Names()
	dumps = map[string]fs.FileInfo{}
	for _, name := range names {
		number, isDump := strings.CutPrefix(strings.TrimSuffix(name, ".reel"), "slow-")
		n, nerr := strconv.Atoi(number)
		if nerr != nil || !isDump {
			continue
		}
		last = max(last, n)
		if fi, err := d.MayReplace(name); err == nil {
			dumps[name] = fi
		}
	}
	return dumps, last, errors.Join(err, d.Close())
}

// loop waits for triggers until the context ends or the process does, whose last moments are dumped then.
func (a *armed) loop(ctx context.Context) (err error) {
	r := a.r
	if err := a.keeper.Prepare(); err != nil {
		return err
	}
	// A folder that can't be read has numbers that are free all the same.
	if old, last, _ := r.dumpsThere(); r.opt.Force {
		a.old = old
	} else {
		a.number = last
	}
	stop := context.AfterFunc(ctx, a.watches.Wake)
	defer stop()
	r.notice("armed: process %d is recorded into memory, and dumped to %s", r.s.Process.Pid(), r.opt.Output)
	if a.o.Begun != nil {
		a.o.Begun(r.s.Process.Pid())
	}
	defer close(a.over)
	go a.forward(ctx)
	longest := a.tick()
	tick, last := min(longest, makingTick), time.Now()
	for {
		a.watches.Wait(a.seen, tick)
		r.s.Memory.Beat()
		if silent := time.Since(last); silent > longSilence && !r.s.Memory.Sandboxed() {
			if err := a.d.reopen(silent); err != nil {
				return err
			}
		}
		last = time.Now()
		making := a.making.round()
		a.keeper.Meet(a.meet)
		gone, err := a.look(last)
		if err != nil {
			return err
		}
		ended := gone || ctx.Err() != nil || r.s.Memory.Sandboxed()
		a.refill()
		inVain := a.fired() // what fired before the end is dumped
		if gone {
			a.dumpAtEnd()
		}
		if ended {
			return nil
		}
		a.overdue()
		select {
		case q := <-a.requests:
			a.request(q)
		case f := <-a.changes:
			f()
			longest = a.tick()
		default:
		}
		a.progress(last)
		if inVain { // more may fire all the time, each of which would wake us
			a.rest(ctx)
		}
		if tick = longest; making {
			tick = min(tick, makingTick) // more functions are likely to be called for the first time
		}
	}
}

// rest lets triggers fire that are only counted.
func (a *armed) rest(ctx context.Context) {
	const inVainRest = 5 * time.Millisecond
	select {
	case <-ctx.Done():
	case <-time.After(inVainRest):
	}
}

// forward passes requests on to the loop.
func (a *armed) forward(ctx context.Context) {
	for {
		select {
		case q, open := <-a.o.Requests:
			if !open {
				return
			}
			if !a.ask(ctx, q) && q.Answer != nil {
				q.Answer(Dumped{}, errors.New("callreel: the recording has ended"))
			}
		case <-a.over:
			return
		}
	}
}

// ask wakes the loop for a request, which will be answered; it returns false if the loop has ended.
func (a *armed) ask(ctx context.Context, q DumpRequest) bool {
	for {
		a.watches.Wake()
		select {
		case a.requests <- q:
			return true
		case <-a.over:
			return false
		case <-ctx.Done():
			return false
		case <-time.After(time.Millisecond):
		}
	}
}

// tick is how long to wait for triggers: calls that don't return are to be noticed soon.
func (a *armed) tick() time.Duration {
	return a.r.triggers.Interval(longestTick)
}

// meet notes a thread that has written for the first time. That the target says so costs it nothing: one that isn't there, and has written
// nothing, is not kept.
func (a *armed) meet(nstid, _ int, name string) {
	if a.threads[nstid] != nil {
		return
	}
	t := &heldThread{nstid: nstid, tid: nstid, pid: a.r.s.Process.Pid(), name: name}
	if !a.d.sameNS {
		t.tid = a.d.outerTID(t.pid, nstid)
	}
	var err error
	now := ring.Ticks()
	if t.start, err = process.StartTime(t.pid, t.tid); err == nil {
		t.seen = now
	} else if !a.keeper.Holds(nstid) {
		a.keeper.Forget(nstid)
		return
	}
	a.readName(t)
	a.threads[nstid] = t
}

// readName reads a thread's name. That of one that has ended is the last one known.
func (a *armed) readName(t *heldThread) {
	own := a.r.s.Memory.OwnName(t.nstid) // before, so that what is read is no older
	name, err := process.ThreadName(t.pid, t.tid)
	if err != nil {
		a.ownName(t)
		return
	}
	t.name, t.own = name, own
}

// ownName goes by the name that a thread has given itself since its name was last read, if stubs have seen that.
func (a *armed) ownName(t *heldThread) {
	if own := a.r.s.Memory.OwnName(t.nstid); own.IsThere() && own != t.own {
		t.name, t.own = own.Name, own
	}
}

// look looks which threads there are, now and then, and whether the process has gone.
func (a *armed) look(now time.Time) (gone bool, err error) {
	if !a.r.s.Process.Alive() {
		return true, nil
	}
	if now.Sub(a.last.pair) >= pairInterval {
		a.pair()
	}
	if now.Sub(a.last.look) < lookInterval*time.Duration(1+len(a.threads)/100) {
		return false, nil
	}
	a.last.look = now
	looked := ring.Ticks()
	live := a.d.firstTasks()
	if live == nil {
		return true, nil
	}
	for nstid, t := range a.threads {
		if live[t.tid] {
			t.seen = looked
			continue
		}
		t.end = ring.Ticks()
		a.ownName(t)
		a.keeper.End(nstid)
		a.ended = append(a.ended, t)
		delete(a.threads, nstid)
	}
	if len(a.ended) > a.mostEnded {
		a.forgetEnded()
		a.mostEnded = max(manyEnded, 2*len(a.ended))
	}
	return false, nil
}

// manyEnded is of how many threads that have ended at least it is not looked whether the rings hold anything of them.
const manyEnded = 1000

// forgetEnded forgets the threads of which the rings can't hold anything any more.
func (a *armed) forgetEnded() {
	oldest, held := a.keeper.Oldest(), a.keeper.Threads()
	a.gone += len(a.ended)
	a.ended = slices.DeleteFunc(a.ended, func(t *heldThread) bool { return int64(t.end-oldest) < 0 || !held[t.nstid] })
	a.gone -= len(a.ended)
	a.gaps = slices.DeleteFunc(a.gaps, func(g gap) bool { return int64(g.to-oldest) < 0 })
}

// pair reads both clocks.
func (a *armed) pair() {
	now := time.Now()
	a.last.pair = now
	if len(a.pairs) == maxPairs {
		a.pairs = slices.Delete(a.pairs, 1, maxPairs/2)
	}
	a.pairs = append(a.pairs, reel.ClockPair{Tick: ring.Ticks(), UnixNS: now.UnixNano()})
}

// refill lets triggers make dumps again after a while.
func (a *armed) refill() {
	now := time.Now()
	a.tokens = min(dumpsAtOnce, a.tokens+now.Sub(a.filled).Seconds()/dumpEvery.Seconds())
	a.filled = now
	a.watches.Arm(a.mayDump())
}

func (a *armed) mayDump() bool {
	return a.tokens >= 1 && (a.o.Max == 0 || a.r.result.Triggers.Dumped < a.o.Max)
}

func (a *armed) progress(now time.Time) {
	if a.r.opt.Progress == nil || now.Sub(a.last.rename) < flushInterval {
		return
	}
	a.last.rename = now
	a.r.noticeMu.Lock()
	defer a.r.noticeMu.Unlock()
	a.r.opt.Progress(Progress{Elapsed: now.Sub(a.d.started), Threads: len(a.threads), Armed: true, Triggers: a.r.result.Triggers})
}

// end sums up.
func (a *armed) end() error {
	more := int(a.watches.Fired() - a.seen)
	a.r.result.Triggers.Fired += more
	a.r.result.Triggers.Suppressed += more
	if n := a.watches.Unwatched(); n > 0 {
		a.r.notice("%d calls were not watched: more than %d were open at once", n, ring.OpenCalls)
	}
	a.r.result.Threads = len(a.threads) + len(a.ended) + a.gone
	return a.keeper.Close()
}
