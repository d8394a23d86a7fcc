package collect

import (
	"errors"
	"slices"
	"time"

	"github.com/callreel/callreel/recorder/internal/overdue"
	"github.com/callreel/callreel/recorder/internal/ring"
)

const (
	// mostBegan is of how many threads it is asked what they had open when recording began.
	mostBegan = 64
	// longestBegan is for how long that is waited for, and mostHeldBack how many events are held back meanwhile, of 16 bytes: with a million main was
	// missing in 3 of 14 recordings on a busy machine, with four in none.
	longestBegan = 5 * time.Second
	mostHeldBack = 4 << 20
)

// began is what threads had open when recording began.
type began struct {
	asked   map[int]*overdue.Look // by IDs as the target sees them; nil until it is known
	until   uint64                // the tick until which it is waited for
	waiting []*thread             // that hold back what they write
}

// askBegan asks what threads have open.
func (d *Collector) askBegan() error {
	if d.Overdue == nil {
		return nil
	}
	threads, err := d.Target.Process.Threads()
	if err != nil {
		return err
	}
	d.began.asked = map[int]*overdue.Look{}
	d.began.until = ring.Ticks() + ring.TicksOf(longestBegan, d.TicksPerSecond)
	for _, t := range threads {
		if len(d.began.asked) == mostBegan {
			break
		}
		if wants(d.Config.Threads, t.Name) && d.Overdue.Ask(overdue.Question{TID: t.TID, NSTID: t.NSTID, Began: true}) {
			d.began.asked[t.NSTID] = nil
		}
	}
	return nil
}

// awaits has a thread hold back what it writes, if it was asked what it had open. start is when it began, in clock ticks since boot.
func (d *Collector) awaits(k *thread, start uint64) {
	if _, asked := d.began.asked[k.nstid]; asked && start != 0 && start <= d.Since && k.silence.Last == 0 {
		k.silence.Await()
		d.began.waiting = append(d.began.waiting, k)
	}
}

// letBegin lets go what threads have held back whose answers have come, or come too late. It is called behind a round; left says that some of what
// was there hasn't been read.
func (d *Collector) letBegin(left bool) error {
	if len(d.began.asked) > 0 && d.Target.Memory.Paused() { // what is left meanwhile says nothing
		clear(d.began.asked)
	}
	if len(d.began.waiting) == 0 {
		return nil
	}
	held := 0
	for _, k := range d.began.waiting {
		n, _ := k.silence.Awaits()
		held += n
	}
	late := held > mostHeldBack || ring.Ticks() > d.began.until
	var err error
	d.began.waiting = slices.DeleteFunc(d.began.waiting, func(k *thread) bool {
		if _, waits := k.silence.Awaits(); !waits { // it has ended
			return true
		}
		look, asked := d.began.asked[k.nstid]
		unknown := asked && (look == nil || left && k.silence.Last < look.Tick && d.drainer.Unread(k.nstid))
		switch {
		case unknown && !late:
			return false
		case unknown || !asked:
			look = &overdue.Look{}
		}
		err = errors.Join(err, k.begun(look))
		return true
	})
	return err
}

// begun puts out what was held back. Calls of functions that are off may have been left since.
func (k *thread) begun(look *overdue.Look) error {
	delete(k.c.began.asked, k.nstid)
	for n := len(look.Calls); n > 0 && k.c.Switches.IsOff(look.Calls[n-1].ID); n-- {
		look.Calls = look.Calls[:n-1]
	}
	return k.silence.Begun(*look, k.c.Began, k.handOn)
}
