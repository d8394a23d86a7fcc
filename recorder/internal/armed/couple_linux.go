package armed

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/scheduling"
	"github.com/callreel/callreel/reel"
)

// Couple is armed recordings of several processes whose dumps have all of them: whichever dumps, the others add what they hold of the same
// time. Their Catalog and Scheduler are the same. A nil Couple is that of one recording alone.
type Couple struct {
	turn chan struct{} // has an element while one of them makes a dump
	all  chan struct{} // closed when all have joined
	over chan struct{} // closed when none has a dump to make any more

	mu       sync.Mutex // guards what follows; a loop that has left isn't woken any more
	size     int
	joined   int
	loops    []*Loop // that have joined, and not left
	finished []*Loop // that make no dump any more
	made     int     // dumps that triggers of any of them made
	left     uint64  // when a loop left last, in TSC ticks, 0 before: what it held is in no dump any more
}

// NewCouple returns a Couple of so many recordings. Each must run.
func NewCouple(size int) *Couple {
	return &Couple{turn: make(chan struct{}, 1), all: make(chan struct{}), over: make(chan struct{}), size: size}
}

// join comes when the loop is about to run.
func (c *Couple) join(a *Loop) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loops = append(c.loops, a)
	if c.joined++; c.joined == c.size {
		close(c.all)
	}
}

// leave comes before the loop's memory goes.
func (c *Couple) leave(a *Loop) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loops = slices.DeleteFunc(c.loops, func(b *Loop) bool { return b == a })
	c.left = ring.Ticks()
	c.finish(a)
}

// lost is up to when calls are missing of processes that aren't recorded any more, 0 if there are none.
func (c *Couple) lost() uint64 {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left
}

// finish notes that a loop makes no dump any more. The caller holds mu.
func (c *Couple) finish(a *Loop) {
	if slices.Contains(c.finished, a) {
		return
	}
	if c.finished = append(c.finished, a); len(c.finished) == c.size {
		close(c.over)
	}
}

// end takes part in the dumps of the others until none of them makes one any more. All of them have been told to end.
func (c *Couple) end(a *Loop) {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.finish(a)
	c.mu.Unlock()
	for {
		select {
		case <-c.over:
			return
		case q := <-a.joint:
			a.takePart(q)
		}
	}
}

// count counts a trigger's dump.
func (c *Couple) count() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made++
}

// dumped is how many dumps triggers have made, of which own are the loop's.
func (c *Couple) dumped(own int) int {
	if c == nil {
		return own
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made
}

// wake wakes a loop, and says whether it is still there.
func (c *Couple) wake(a *Loop) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.loops, a) {
		return false
	}
	a.predicates.Wake()
	return true
}

// begin waits until it is the loop's turn to dump; meanwhile it takes part in the dumps of others. end lets others have theirs.
func (c *Couple) begin(a *Loop) (end func()) {
	if c == nil {
		return func() {}
	}
	<-c.all
	for {
		select {
		case c.turn <- struct{}{}:
			return func() { <-c.turn }
		case q := <-a.joint:
			a.takePart(q)
		}
	}
}

// joint is a dump that another loop makes, in which a loop takes part.
type joint struct {
	to    uint64         // up to when
	took  chan error     // of copying; nothing follows an error
	write chan *jointOut // closed if there is no dump after all
	wrote chan error
}

// jointOut is what the parts of a dump are written to, one after the other.
type jointOut struct {
	w      *catalogued
	win    window
	dump   *reel.Dump
	called []scheduling.Called
}

// ask lets the others copy what they hold, while the loop copies its own. The function that it returns waits for that, and returns those
// that have done it.
func (c *Couple) ask(a *Loop, to uint64) (copied func() []*joint) {
	if c == nil {
		return func() []*joint { return nil }
	}
	c.mu.Lock()
	others := slices.DeleteFunc(slices.Clone(c.loops), func(b *Loop) bool { return b == a })
	c.mu.Unlock()
	asked := make(chan []*joint, 1)
	go func() {
		var list []*joint
		for _, b := range others {
			q := &joint{to: to, took: make(chan error, 1), write: make(chan *jointOut, 1), wrote: make(chan error, 1)}
			if c.hand(b, q) {
				list = append(list, q)
			}
		}
		asked <- list
	}()
	return func() []*joint {
		return slices.DeleteFunc(<-asked, func(q *joint) bool {
			err := <-q.took
			if err != nil {
				a.Notice("a dump lacks a process: %v", err)
			}
			return err != nil
		})
	}
}

// hand gives a loop a dump to take part in. It returns false if the loop has ended.
func (c *Couple) hand(b *Loop, q *joint) bool {
	const again = time.Millisecond // it may have been woken before it waited
	for c.wake(b) {
		select {
		case b.joint <- q:
			return true
		case <-time.After(again):
		}
	}
	return false
}

// release says that no dump comes.
func release(list []*joint) {
	for _, q := range list {
		close(q.write)
	}
}

// writeParts lets the others write what they have copied.
func writeParts(list []*joint, out *jointOut) (err error) {
	for _, q := range list {
		q.write <- out
		err = errors.Join(err, <-q.wrote)
	}
	return err
}

// takePart copies what the rings hold, and writes it into another loop's dump.
func (a *Loop) takePart(q *joint) {
	defer a.undisturbed()()
	a.letGo()
	held, threads, err := a.take(q.to)
	defer a.compact.done(held)
	if q.took <- err; err != nil {
		return
	}
	if out, ok := <-q.write; ok {
		q.wrote <- a.writePart(out, held.lost, threads, nil)
	}
}

// writePart writes the loop's threads into a dump, but for what the scheduler did with them, and for pauses of all processes. Calls are missing
// up to lost, of threads that aren't in it.
func (a *Loop) writePart(out *jointOut, lost uint64, threads []*threadRuns, causes []cause) error {
	var said []saidBy
	if err := a.writeThreads(out.w, out.win, threads, causes, out.dump, &said); err != nil {
		return err
	}
	out.called = append(out.called, a.called(threads)...)
	if began := min(a.Began, out.win.to); began > out.win.from { // it is one of several, and another's began before
		for _, t := range threads {
			if t.w != nil {
				out.dump.Missing = append(out.dump.Missing, reel.Missing{Thread: t.key, From: out.win.from, To: began})
			}
		}
	}
	win := out.win
	win.lost = lost
	a.missingByFreezing(win, threads, out.dump)
	return errors.Join(a.writeOffs(out.w, out.win), writePauses(out.w, ownPauses(said, out.win)))
}

// writePauses writes pauses into a dump.
func writePauses(w *catalogued, list []reel.Pause) (err error) {
	for _, p := range list {
		err = errors.Join(err, w.Pause(p))
	}
	return err
}
