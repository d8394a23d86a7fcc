package armed

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callreel/callreel/recorder/internal/pace"
	"github.com/callreel/callreel/recorder/internal/past"
	"github.com/callreel/callreel/recorder/internal/probes"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// compactor takes what full chunks of the rings hold, before they are overwritten, into the store of the past. It runs beside the loop, which
// may be writing a dump.
type compactor struct {
	a     *Loop
	store *past.Store

	dumping atomic.Int32 // above 0 while the loop writes a dump, or waits to

	mu         sync.Mutex // held while chunks are taken, and while the rings are copied for a dump
	goroutines bool
	picked     map[int]*picked
	counted    map[int]*counted // of Config.Tally
	all        int              // what the lists of open calls of all threads have
	lasting    lasting
	rested     time.Time
	looked     uint64   // when full chunks were last looked for, in ticks
	unread     uint64   // chunks that were overwritten unread up to then
	gaps       []window // in which some were
}

// picked is a thread of a program some functions of which have been switched off.
type picked struct {
	next uint32 // number of the ring's next chunk
	open probes.OpenCalls
}

// counted is a thread whose calls are counted.
type counted struct {
	next uint32 // number of the ring's next chunk
	*reel.LiveThread
}

// How often full chunks are looked for: so often that rings of that many chunks are filled by a sixteenth meanwhile, and no hand has gone half
// a round before a burst is noticed.
const (
	compactLongest = 10 * time.Millisecond // for rings of compactChunks
	compactChunks  = 1024
	compactLeast   = time.Millisecond
	compactPart    = 16
	// maxPicked is of how many threads it is kept which calls were open, in programs some functions of which have been off.
	maxPicked = 1 << 16
	// peekInterval is how often it is looked whether many chunks, one in peekPart of all, have been filled, where calls are counted for a budget:
	// what costs too much is to be known soon.
	peekInterval = pace.Step
	peekPart     = 64
	// restAfter is when a chunk of the store is ended that nothing comes to.
	restAfter = 2 * time.Second
)

func newCompactor(a *Loop) *compactor {
	a.snapshots.TakesFull()
	return &compactor{a: a, goroutines: a.Target.Go != nil, picked: map[int]*picked{}, counted: map[int]*counted{}, store: past.New(past.Config{Memory: a.Memory, Mode: a.Catalog.mode(), Goroutines: a.Target.Go != nil,
		Translate: a.Functions.Translate})}
}

// run takes full chunks until ctx ends.
func (c *compactor) run(ctx context.Context) {
	chunks := c.a.snapshots.Chunks()
	longest := max(compactLeast, min(compactLongest, compactLongest*time.Duration(chunks)/compactChunks))
	wait, last := longest, time.Now()
	for {
		if !c.rest(ctx, wait) {
			return
		}
		rounds := &c.a.Switches.Rounds
		rounds.Begin()
		c.mu.Lock()
		moved, err := c.round()
		crowded := moved > 0 && c.a.snapshots.Crowded()
		said := c.look()
		c.mu.Unlock()
		if said != "" {
			c.a.Notice("%s", said)
		}
		rounds.End(true)
		if err != nil {
			c.a.Notice("what the rings hold can't be kept: %v; dumps are of what the rings hold themselves", err)
			return
		}
		if crowded && !c.a.crowded.Swap(true) {
			c.a.predicates.Wake()
		}
		now := time.Now()
		took := now.Sub(last)
		last = now
		wait = min(2*wait, longest)
		if c.dumping.Load() > 0 && c.a.snapshots.Frozen() { // by a call that fired as that was being forbidden
			c.a.snapshots.LetGo()
		}
		if moved > 0 {
			wait = min(wait, took*time.Duration(max(1, chunks/compactPart))/time.Duration(moved))
		}
	}
}

// rest waits so long, or until many chunks have been filled where that is to be known soon, or somebody waits for a round. It returns false if ctx ends.
func (c *compactor) rest(ctx context.Context, wait time.Duration) bool {
	wait = max(wait, compactLeast)
	step := wait
	if c.a.Tally != nil {
		step = min(step, peekInterval)
	}
	many := uint64(max(1, c.a.snapshots.Chunks()/peekPart))
	for ; wait > 0 && c.a.snapshots.Moved() < many && !c.a.Switches.Rounds.Awaited(); wait -= step {
		if pace.Wait(ctx, pace.Rest(time.Now(), min(step, wait)), c.a.Naps); ctx.Err() != nil {
			return false
		}
	}
	return ctx.Err() == nil
}

// look looks how much is kept, once a second, and returns what there is to say of it. The caller holds mu.
func (c *compactor) look() string {
	now := time.Now()
	if n := len(c.lasting.samples); n > 0 && now.Sub(c.lasting.samples[n-1].at) < time.Second {
		return ""
	}
	kept := c.store.Stats()
	c.lasting.add(now, kept.Added)
	return c.lasting.say(now, kept.Memory, time.Duration(c.a.keep.Load()))
}

// past is what is kept now.
func (c *compactor) past() Past {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.store.Stats()
	p := Past{Memory: kept.Memory, Used: kept.Used, Events: kept.Events, Lasts: c.lasting.lasts(kept.Memory)}
	if kept.Reaches != 0 {
		p.ReachesBack = time.Duration(float64(ring.Ticks()-kept.Reaches) / float64(c.a.TicksPerSecond) * float64(time.Second))
	}
	return p
}

// round takes the chunks that are full. The caller holds mu.
func (c *compactor) round() (moved uint64, err error) {
	looked := ring.Ticks()
	moved, err = c.a.snapshots.TakeFull(c.names(), c.take)
	c.noteUnread(looked)
	if now := time.Now(); err == nil && now.Sub(c.rested) > restAfter/2 {
		c.rested = now
		ticks := ring.Ticks()
		err = c.store.Rest(ticks - min(ticks, ring.TicksOf(restAfter, c.a.TicksPerSecond)))
	}
	return moved, err
}

// names are what events are called in dumps, if nobody asks for the target's own before they are kept.
func (c *compactor) names() ring.Names {
	if c.goroutines || c.a.Switches.Touched() || c.a.Tally != nil {
		return c.a.Functions.Own()
	}
	return c.a.Functions.Names()
}

// noteUnread notes whether chunks were overwritten unread since full ones were looked for before.
func (c *compactor) noteUnread(now uint64) {
	before := max(c.looked, c.a.Began)
	c.looked = now
	n := c.a.snapshots.Unread()
	if n == c.unread {
		return
	}
	c.unread = n
	if k := len(c.gaps); k > 0 && c.gaps[k-1].to >= before {
		c.gaps[k-1].to = now
		return
	}
	const most = 1000
	if len(c.gaps) >= most {
		c.gaps = slices.Delete(c.gaps, 0, most/2)
	}
	c.gaps = append(c.gaps, window{from: before, to: now})
}

// take keeps what a chunk has held, but for the calls of functions that were switched off.
func (c *compactor) take(h *ring.Run) error {
	if c.goroutines || c.a.Switches.Touched() {
		h.TakeBackNames() // functions may have been switched off since the round began
		p := c.picked[h.TID]
		if p == nil || p.next != h.Seq {
			if p != nil {
				p.open.Forget()
			}
			if len(c.picked) >= maxPicked { // the target says which threads there are
				clear(c.picked)
				c.all = 0
			}
			p = &picked{}
			p.open.CountIn(&c.all)
			p.open.Take(c.openBefore(h.TID, h.Seq))
			c.picked[h.TID] = p
		}
		p.next = h.Seq + 1
		if h.Peaks == nil {
			ring.InOrder(h.Events)
		}
		n := len(h.Events)
		if h.Events, h.Payloads = c.a.Switches.Pick(&p.open, h.Events, h.Payloads); len(h.Events) < n {
			h.Peaks = nil
		}
	}
	c.count(h)
	return c.store.Add(h)
}

// count counts the calls of a chunk. What comes out of turn has lost exits before it.
func (c *compactor) count(h *ring.Run) {
	if c.a.Tally == nil {
		return
	}
	t := c.counted[h.TID]
	if t == nil {
		if len(c.counted) >= maxPicked { // the target says which threads there are
			for _, t := range c.counted {
				t.End(h.From)
			}
			clear(c.counted)
		}
		t = &counted{next: h.Seq, LiveThread: c.a.Tally.Thread()}
		c.counted[h.TID] = t
	}
	if t.next != h.Seq {
		t.Dropped(0, 1)
	}
	t.next = h.Seq + 1
	if len(h.Events) > 0 {
		c.a.Switches.Forget(t.LiveThread, h.Events[0].Time, c.a.TicksPerSecond)
	}
	t.Push(h.Events)
	if n := len(h.Events); n > 0 {
		if c.a.Tally.Saw(n, h.Events[n-1].Time) {
			c.a.Tally.GiveWay(c.a.Switches.Rounds.Serve)
		}
	}
}

// OpenFunctions are those of which calls are open, in what is kept and in the rings. It is called behind a round.
func (c *compactor) OpenFunctions() (open map[uint32]bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	runs, err := c.a.snapshots.Take(ring.Ticks())
	if err != nil {
		return nil, err
	}
	defer c.a.snapshots.Shed()
	open = map[uint32]bool{}
	calls := map[int]*probes.OpenCalls{}
	next := map[int]uint32{}
	for tid, p := range c.picked {
		calls[tid], next[tid] = p.open.Clone(), p.next
	}
	c.store.EachOpen(func(tid int, entries []past.Open) {
		if calls[tid] == nil {
			for _, o := range entries {
				open[o.ID()] = true
			}
		}
	})
	for i := range runs {
		h := &runs[i]
		o := calls[h.TID]
		if o == nil || next[h.TID] != h.Seq {
			o = &probes.OpenCalls{}
			o.Take(c.openBefore(h.TID, h.Seq))
			calls[h.TID] = o
		}
		next[h.TID] = h.Seq + 1
		ring.InOrder(h.Events)
		o.Take(h.Events)
	}
	for _, o := range calls {
		for id := range o.Functions {
			open[id] = true
		}
	}
	return open, nil
}

// openBefore are the entries of the calls that were open before a thread got a chunk of the rings, as far as the store knows.
func (c *compactor) openBefore(tid int, seq uint32) (entries []reel.Event) {
	if c.goroutines {
		return nil
	}
	for _, o := range c.store.Open(tid, seq) {
		entries = append(entries, o.Event)
	}
	return entries
}

// pick leaves out of what the rings hold of a thread what functions that are or were off have no pairs for. The caller holds mu.
func (c *compactor) pick(tid int, runs []ring.Run) {
	if !c.a.Switches.Touched() {
		return
	}
	open := &probes.OpenCalls{}
	if p := c.picked[tid]; p != nil && p.next == runs[0].Seq {
		open = p.open.Clone()
	} else {
		open.Take(c.openBefore(tid, runs[0].Seq))
	}
	c.a.Switches.PickRuns(open, runs)
}

// copies are what the rings and the store have held up to a moment. The store may have some of what came behind it.
type copies struct {
	lost uint64 // up to when calls are missing of threads of which there is nothing
	runs []ring.Run
	held []past.Held
	gaps []window // in which chunks were overwritten unread
}

// copy copies what the rings hold up to a moment, in TSC ticks, that the store doesn't have, and holds what the store has. Threads go on meanwhile. The runs are valid up to
// the next copy; what is held is to be released.
func (c *compactor) copy(to uint64) (all copies, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if all.runs, err = c.a.snapshots.Take(to); err != nil {
		return all, err
	}
	for i := range all.runs {
		ring.InOrder(all.runs[i].Events)
	}
	for i := 0; i < len(all.runs); {
		k := i + 1
		for k < len(all.runs) && all.runs[k].TID == all.runs[i].TID {
			k++
		}
		c.pick(all.runs[i].TID, all.runs[i:k])
		i = k
	}
	all.gaps, c.gaps = c.gaps, nil // which the loop keeps from now on
	if all.held, err = c.store.Hold(); err != nil {
		return all, err
	}
	all.lost = c.store.Stats().Lost
	runs := all.runs
	for _, h := range all.held {
		for len(runs) > 0 && runs[0].TID < h.TID {
			runs = runs[1:]
		}
		if len(h.Chunks) == 0 && (len(runs) == 0 || runs[0].TID != h.TID) {
			all.lost = max(all.lost, h.To)
		}
	}
	return all, nil
}

// done gives back what copy has returned.
func (c *compactor) done(all copies) {
	c.store.Release(all.held)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.a.snapshots.Shed()
}

// forget forgets threads that have ended and of which nothing is kept.
func (c *compactor) forget(lives func(tid int) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store.Forget(lives)
	for tid, p := range c.picked {
		if !lives(tid) {
			p.open.Forget()
			delete(c.picked, tid)
		}
	}
	for tid, t := range c.counted {
		if !lives(tid) {
			t.End(ring.Ticks())
			delete(c.counted, tid)
		}
	}
}
