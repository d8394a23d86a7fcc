package budget

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/callreel/callreel/recorder/internal/pace"
	"github.com/callreel/callreel/recorder/internal/target"
)

// Sites can be taken out of the text and put back.
type Sites interface {
	TakeOut(ctx context.Context, ids map[uint32]bool) (target.TakenOut, error)
	PutBack(ctx context.Context, ids map[uint32]bool) (target.TakenOut, error)
}

// Probes can be switched off and on.
type Probes interface {
	// Reject switches off functions by their IDs, and others on that it has switched off. Of those that are off nothing is recorded any more:
	// it returns which they are.
	Reject(off, on []uint32) (are []uint32, err error)
	// Closed are those of the functions that are off of which no event can come any more.
	Closed(ids []uint32) []uint32
	// Kept says of functions whether they stay on whatever they cost.
	Kept(id uint32) bool
}

// Config says what is kept within which budget, and how.
type Config struct {
	// Share is the budget: of the processor time that the process uses.
	Share  float64
	Sites  Sites
	Probes Probes
	// InLoop calls a function in the goroutine that reads the rings.
	InLoop func(func()) error
	Tally  *Tally
	// CPU is how much processor time the process has used.
	CPU func() (time.Duration, error)
	// Ticks is the clock of the events, TicksPerSecond its rate.
	Ticks          func() uint64
	TicksPerSecond uint64
	// CountOff is whether calls of functions that are off are to be counted by samples.
	CountOff bool
	// Off is told of functions that go off, and again when they come on, or in the end.
	Off func(list []Off)
	// Notice tells what the user should know.
	Notice func(format string, args ...any)
}

// Off is a time in which a function wasn't recorded, in ticks; To is 0 as long as that goes on. Estimated is how many calls it had then, by
// samples; 0 if nobody has looked.
type Off struct {
	ID        uint32
	From, To  uint64
	Estimated uint64
	// Rate is how many calls it had a tick when it was last on; 0 where To isn't.
	Rate float64
	// Last says that it was off up to the end of the recording.
	Last bool
}

// How often it is looked, and for how long.
const (
	firstSample  = 60 * time.Millisecond // all is on
	laterSample  = 40 * time.Millisecond
	stretch      = 60 * time.Millisecond  // between looks at what the functions cost that are on
	soonStretch  = 15 * time.Millisecond  // the same, while there is still much that costs too much
	closeStretch = 5 * time.Millisecond   // the same, while sites are to be taken out
	idleStretch  = 200 * time.Millisecond // the same, of a process that does next to nothing
	unsettled    = time.Second            // for how long functions are looked for soon when some have been switched off
	// sampleEvery is how often all is switched on for a moment while the load stays the same, countEvery the same for CountOff, and
	// sampleAtMost where it changes.
	sampleEvery  = time.Minute
	countEvery   = 10 * time.Second
	sampleAtMost = 2 * time.Second
	// changed is from which distance on two loads are not the same: half the sum of how much each function's share of the calls differs.
	changed = 0.5
	// leastSample is how much processor time there has to be in a later sample, and sampleAtLongest for how long that is waited for: what a
	// process calls while it rests says nothing of what it calls when it works.
	leastSample, sampleAtLongest = laterSample / 4, 5 * laterSample
	sampleStep                   = laterSample / 4
	// leastFirst is how much processor time there is in the first.
	leastFirst = 5 * time.Millisecond
	// patience is how much more than the budget may be spent before something is done: so much as it is for in this time.
	patience = 50 * time.Millisecond
	// kind is for how much processor time, or how long, calls are counted to tell one kind of load from another.
	kind, kindAtMost = 60 * time.Millisecond, 200 * time.Millisecond
	// within is the part of the budget that is given away: what is measured is not exact.
	within = 0.7
	// tighter is the part of that for those who have just been found to spend too much, and do again.
	tighter = 0.5
	// most is the part of it that may be spent before more is left out.
	most = 0.8
)

// Keeper keeps a budget. Run does; Stats may be called at any time.
type Keeper struct {
	c     Config
	price float64 // ns a call, what is gone by
	// thought is what a call is thought to cost, was the same when the last sample was taken. isMeasured says that it isn't just a guess.
	was, thought estimate
	isMeasured   bool
	gauge        gauge
	off          map[uint32]*offState
	stays        map[uint32]bool // functions that could not be switched off
	cpu          time.Duration   // when the last stretch ended
	tick         uint64          // the same
	until        uint64          // up to when its events were read
	sampled      time.Time
	all          []Function // of the last sample
	before       load       // the same
	usual        []Function // calls of what is on, of the first stretches since the last sample
	known        memory
	now          kindOfLoad
	recent       recent
	short        short
	second       lastSecond
	named        named
	debt         float64   // seconds of processor time by which more was spent than might be
	found        time.Time // when functions were rejected last
	excess       time.Time // when more was spent than may be, last
	differs      int       // stretches in a row that are of another load
	// bySample says that what is on was chosen by the last sample, or left out soon after it: so the work is as it was then.
	bySample bool
	// chosen is when it was chosen last, chosenAt at which price.
	chosen   time.Time
	chosenAt float64

	mu    sync.Mutex // guards what follows
	stats Stats
}

// offState is a function that is off.
type offState struct {
	since uint64
	out   bool    // its sites are taken out
	stuck bool    // they can't be: it isn't tried again before all is on for a sample
	rate  float64 // calls a tick by the last sample
}

// Stats is how a budget is kept.
type Stats struct {
	Wanted   float64 // share of the processor time
	Measured float64 // of what is on, in the last second
	Sure     float64 // standard error of that
	Price    float64 // ns of processor time a call, while it isn't measured a guess
	Off      int     // functions that are off
	Removed  int     // sites that are taken out
	Calls    float64 // share of calls that are recorded, by the last sample
	Time     float64 // the same, of the time that functions took themselves
	Stops    int
	Stopped  time.Duration // of all stops
	Longest  time.Duration // of them
	Samples  int
}

// New returns a keeper of a budget.
func New(c Config) *Keeper {
	return &Keeper{c: c, price: firstPrice.price(), was: firstPrice, thought: firstPrice, off: map[uint32]*offState{}, stays: map[uint32]bool{}, known: memory{}, stats: Stats{Wanted: c.Share, Price: firstPrice.price(), Calls: 1, Time: 1}}
}

// Stats is how the budget is kept.
func (k *Keeper) Stats() Stats {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.stats
}

// Run keeps the budget until ctx ends, or the recording does. Then all stays as it is.
func (k *Keeper) Run(ctx context.Context) {
	defer k.end()
	for rest := retryFirst; ; rest = min(2*rest, retryLast) {
		began := time.Now()
		err := k.keep(ctx)
		if err == nil || !sleep(ctx, endsWithin) { // the recording may be about to end
			return
		}
		if time.Since(began) > retryLast { // it was kept meanwhile
			rest = retryFirst
		}
		k.c.Notice("the budget isn't kept now, which is tried again in %v: %v", rest, err)
		if !sleep(ctx, rest) {
			return
		}
	}
}

// How soon it is tried again to keep the budget after something has failed, at first and at last. What fails may do so only now, since the
// machine is busy, or the reel's disk slow. To give up would leave on what is on, whatever that costs.
const (
	retryFirst, retryLast = time.Second, time.Minute
	endsWithin            = 300 * time.Millisecond
)

func (k *Keeper) keep(ctx context.Context) error {
	if _, _, err := k.stretch(); err != nil { // what came before is forgotten
		return err
	}
	if k.sampled.IsZero() {
		if err := k.first(ctx); err != nil || ctx.Err() != nil {
			return err
		}
	}
	for ctx.Err() == nil {
		if err := k.turn(ctx); err != nil {
			return err
		}
	}
	return nil
}

// turn waits for a while, and holds against the budget what was called meanwhile.
func (k *Keeper) turn(ctx context.Context) error {
	burst := k.wait(ctx, k.rest())
	if ctx.Err() != nil {
		return nil
	}
	if !burst {
		if err := k.close(ctx); err != nil {
			return err
		}
	}
	if idle, err := k.isIdle(); err != nil {
		return err
	} else if burst || !idle {
		list, l, err := k.stretch()
		if err != nil {
			return err
		}
		if err := k.look(ctx, list, l); err != nil {
			return err
		}
	}
	k.c.Tally.listens.Store(false)
	if burst { // to which there was something more urgent
		if err := k.close(ctx); err != nil {
			return err
		}
	}
	if k.isDue() {
		return k.again(ctx)
	}
	return nil
}

// rest is for how long nothing is done.
func (k *Keeper) rest() time.Duration {
	switch {
	case k.closes():
		return closeStretch
	case time.Since(k.found) < unsettled:
		return soonStretch
	}
	return stretch
}

// wait waits so long, or until ctx ends, or so much is called that it is to be looked at once: that is a burst.
func (k *Keeper) wait(ctx context.Context, d time.Duration) (burst bool) {
	k.c.Tally.listens.Store(true)
	select {
	case <-ctx.Done():
	case <-k.c.Tally.bursts:
		return true
	case <-time.After(pace.Rest(time.Now(), d)):
	}
	k.c.Tally.listens.Store(false)
	return false
}

// isIdle says whether the process has used too little processor time to say anything.
func (k *Keeper) isIdle() (bool, error) {
	cpu, err := k.c.CPU()
	return cpu-k.cpu < leastCPU, err
}

// stretch ends a stretch of time and returns what was called in it.
func (k *Keeper) stretch() (list []Function, l load, err error) {
	var dropped, now, until uint64
	if err := k.c.InLoop(func() {
		now = k.c.Ticks()
		list, dropped, until = k.c.Tally.take(now, k.c.TicksPerSecond, int(2*k.c.Share*patience.Seconds()*1e9/k.price))
	}); err != nil {
		return nil, l, err
	}
	cpu, err := k.c.CPU()
	if err != nil {
		return nil, l, err
	}
	l.cpu, k.cpu = (cpu - k.cpu).Seconds(), cpu
	l.ticks = float64(until - min(k.until, until))
	if took := float64(now - min(k.tick, now)); took > 0 && l.ticks != took { // what was counted is of more, or of less, time
		const most = 20
		part := min(max(l.ticks/took, 1.0/most), most)
		l.cpu *= part
		dropped = uint64(float64(dropped) * part) // they are of the time until now
	}
	k.tick, k.until = now, until
	list = slices.DeleteFunc(list, func(f Function) bool { return f.ID == 0 })
	for i := range list {
		f := &list[i]
		f.Kept = k.stays[f.ID] || k.c.Probes.Kept(f.ID)
		l.all += float64(f.Calls)
	}
	l.dropped = float64(dropped)
	l.all += l.dropped
	return list, l, nil
}

// reject switches functions off, and others on.
func (k *Keeper) reject(ctx context.Context, off, on []uint32, rates map[uint32]float64, now uint64) error {
	if len(off)+len(on) == 0 {
		return nil
	}
	k.on(on, now, false)
	are, err := k.c.Probes.Reject(off, on)
	k.c.Tally.listens.Store(false)
	var fresh []Off
	is := map[uint32]bool{}
	for _, id := range are {
		is[id] = true
		k.off[id] = &offState{since: now, rate: rates[id]}
		fresh = append(fresh, Off{ID: id, From: now, Rate: rates[id]})
	}
	if len(fresh) > 0 {
		k.c.Off(fresh)
	}
	for _, id := range off {
		if !is[id] {
			k.stays[id] = true
		}
	}
	k.count()
	if err != nil {
		return err
	}
	return k.close(ctx)
}

// rate is how many calls of a function there were for each tick of a stretch.
func rate(f *Function, ticks float64) float64 {
	if ticks <= 0 {
		return 0
	}
	return float64(f.Calls) / ticks
}

// putBack puts the sites back of functions that are out.
func (k *Keeper) putBack(ctx context.Context, out map[uint32]bool) error {
	for id, is := range out {
		if !is {
			delete(out, id)
		}
	}
	if len(out) == 0 {
		return nil
	}
	done, err := k.c.Sites.PutBack(ctx, out)
	for _, id := range done.Functions {
		k.off[id].out = false
	}
	k.took(done, -1)
	return err
}

// withoutOut leaves out functions whose sites could not be put back now: they stay off, and are said to be.
func (k *Keeper) withoutOut(ids []uint32) []uint32 {
	return slices.DeleteFunc(ids, func(id uint32) bool { return k.off[id].out })
}

// on notes that functions come on again, last as the recording ends.
func (k *Keeper) on(ids []uint32, now uint64, last bool) {
	var list []Off
	for _, id := range ids {
		if o := k.off[id]; o != nil {
			list = append(list, Off{ID: id, From: o.since, To: now, Estimated: k.estimate(o, now), Last: last})
			delete(k.off, id)
		}
	}
	if len(list) > 0 {
		k.c.Off(list)
	}
}

// estimate is how many calls a function has had since it went off, if that is to be known.
func (k *Keeper) estimate(o *offState, now uint64) uint64 {
	if !k.c.CountOff {
		return 0
	}
	return uint64(o.rate * float64(now-o.since))
}

func (k *Keeper) count() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stats.Off = len(k.off)
}

// close takes the sites out of functions that are off and of which no call is open.
func (k *Keeper) close(ctx context.Context) error {
	var waiting []uint32
	for id, o := range k.off {
		if !o.out && !o.stuck {
			waiting = append(waiting, id)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	ready := map[uint32]bool{}
	for _, id := range k.c.Probes.Closed(waiting) {
		ready[id] = true
	}
	if len(ready) == 0 {
		return nil
	}
	done, err := k.c.Sites.TakeOut(ctx, ready)
	for id := range ready { // each try stops the process
		k.off[id].stuck = err == nil
	}
	for _, id := range done.Functions {
		k.off[id].out, k.off[id].stuck = true, false
	}
	k.took(done, 1)
	k.gauge.after, k.usual, k.now = nil, nil, kindOfLoad{}
	return err
}

// closes says whether sites are to be taken out.
func (k *Keeper) closes() bool {
	for _, o := range k.off {
		if !o.out && !o.stuck {
			return true
		}
	}
	return false
}

// took counts what was done in stops.
func (k *Keeper) took(done target.TakenOut, sign int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := &k.stats
	s.Removed += sign * done.Sites
	s.Stops += done.Stops
	s.Stopped += done.Stopped
	s.Longest = max(s.Longest, done.Longest)
}

// end says until when functions were off.
func (k *Keeper) end() {
	var ids []uint32
	for id := range k.off {
		ids = append(ids, id)
	}
	n := len(k.off)
	k.on(ids, k.c.Ticks(), true)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stats.Off = n
}

// sleep returns false if ctx ends meanwhile.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
