package recorder

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/collect"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// pauses are the times in which the recordings of a reel were to record nothing, and who wants that now: whoever asks the recorder, for all of
// them, and each program for itself. Nothing is recorded while anyone wants it.
type pauses struct {
	changing sync.Mutex // one that asks at a time; it is taken before the others

	mu   sync.Mutex // guards what follows
	on   map[*recording]reader
	list []reel.Pause
	held *held // what was asked for last and is on, nil for nothing
	// selves are the places in list of pauses that programs want and that are on, by process; with -1 it isn't in the list.
	selves map[int]int
	full   bool // somebody has been told that not all are kept
	looked time.Time
}

// held is a pause that was asked for.
type held struct {
	at int // its place in the list
	// atFirst says that it is record --paused, which a program may end as well.
	atFirst bool
}

// maxPauses bounds what is kept, and maxOwnPauses what of programs' own.
const (
	maxPauses    = 1 << 16
	maxOwnPauses = maxPauses - 1<<10
)

// needsTimes says why a recording with that clock can't be paused once it has begun, "" if it can.
func needsTimes(c reel.ClockMode) string {
	if c == reel.ClockFull {
		return ""
	}
	return "which calls are open when a pause begins is told by the time of each event, which only --clock full records"
}

// within are those that overlap a stretch of time.
func (p *pauses) within(from, to uint64) (list []reel.Pause) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.list {
		if x.From < to && (x.To == 0 || x.To > from) {
			list = append(list, x)
		}
	}
	return list
}

// startPaused lets a recording that is about to begin take part: it records nothing as long as the others don't.
func (r *recording) startPaused() {
	p := &r.paused
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.on == nil {
		p.on, p.selves = map[*recording]reader{}, map[int]int{}
	}
	p.on[r] = nil
	if r.isFirst() && r.opt.Paused {
		p.held = &held{atFirst: true}
	}
	p.tell(r)
}

// tell puts into a recording's rings whether it is to pause. The caller holds mu.
func (p *pauses) tell(r *recording) {
	r.s.Memory.SetPausedAtFirst(p.held != nil && p.held.atFirst)
	r.s.Memory.SetPaused(p.held != nil && !p.held.atFirst)
}

// tellAll does so for all. The caller holds mu.
func (p *pauses) tellAll() {
	for r := range p.on {
		p.tell(r)
	}
}

// reads says who drains a recording's rings.
func (p *pauses) reads(r *recording, by reader) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on[r] = by
}

// endPaused ends a recording's part: its rings are about to go. It may have had none.
func (r *recording) endPaused() {
	p := &r.paused
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.on, r)
}

// tellPaused writes into the reel that it begins with a pause.
func (r *recording) tellPaused() error {
	if !r.opt.Paused || !r.isFirst() {
		return nil
	}
	p := &r.paused
	p.mu.Lock()
	defer p.mu.Unlock()
	return r.begin(r.base.BaseTick, "command")
}

// begin begins a pause of all recordings. The caller holds mu.
func (r *recording) begin(from uint64, by string) error {
	x := reel.Pause{From: from, By: by}
	if !r.opt.Follow && !r.isCoupled() { // else it is all of them
		x.Process = r.pid()
	}
	p := &r.paused
	if p.held == nil {
		p.held = &held{}
	}
	p.held.at = len(p.list)
	p.list = append(p.list, x)
	return r.first.out.paused(x)
}

// end ends it. The caller holds mu.
func (r *recording) end(to uint64) error {
	p := &r.paused
	x := &p.list[p.held.at]
	x.To = max(to, x.From+1)
	p.held = nil
	return r.first.out.paused(*x)
}

// pause stops recording, without stopping the process, and returns when all that was recorded before has been taken from the rings. Threads
// that are within an event's code by then write that event still.
func (r *recording) pause(by string) error {
	p := &r.paused
	p.changing.Lock()
	defer p.changing.Unlock()
	readers, err := r.beginPause(by)
	for of, reader := range readers {
		if e := reader.settle(); of.isFirst() { // others may have ended
			err = errors.Join(err, e)
		}
	}
	return err
}

// beginPause returns who drains the rings.
func (r *recording) beginPause(by string) (map[*recording]reader, error) {
	p := &r.paused
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.held != nil && p.held.atFirst:
		p.held.atFirst = false
		p.tellAll()
		return nil, nil
	case p.held != nil:
		return nil, nil
	case needsTimes(r.opt.Clock) != "":
		return nil, fmt.Errorf("it can't be paused: %s", needsTimes(r.opt.Clock))
	case len(p.list) >= maxPauses:
		return nil, fmt.Errorf("it has been paused %d times, and keeps no more of them", len(p.list))
	}
	p.held = &held{}
	p.tellAll()
	err := r.begin(ring.Ticks(), by)
	readers := map[*recording]reader{}
	for of, reader := range p.on {
		if reader != nil {
			readers[of] = reader
		}
	}
	return readers, err
}

// resume goes on with recording, as far as programs don't pause themselves.
func (r *recording) resume() error {
	p := &r.paused
	p.changing.Lock()
	defer p.changing.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == nil {
		return nil
	}
	err := r.end(ring.Ticks())
	p.tellAll()
	return err
}

// obeys returns what is told what a program says of pauses, nil if it isn't obeyed.
func (r *recording) obeys() func(list []collect.Said, began uint64, held bool) {
	const oddRounds = 5
	odd, since := 0, uint64(0)
	return func(list []collect.Said, began uint64, held bool) {
		p := &r.paused
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, s := range list {
			r.said(s)
		}
		// What it said may have found no room in the rings, or be in another order there than its threads have done it. By words it is otherwise
		// for a moment only.
		_, is := p.selves[r.pid()]
		otherwise := !r.s.Runtime.Follow && held != is || p.held != nil && p.held.atFirst && !r.s.Memory.PausedAtFirst()
		switch {
		case !otherwise || len(list) > 0:
			odd = 0
		case odd == 0:
			since = began
			odd++
		case odd < oddRounds:
			odd++
		default:
			r.said(collect.Said{Process: r.pid(), Pause: held, Time: since})
			odd = 0
		}
		const often = 200 * time.Millisecond
		if now := time.Now(); len(p.selves) > 0 && now.Sub(p.looked) > often {
			p.looked = now
			for pid := range p.selves {
				if _, ended := process.Ending(pid); ended {
					r.endSelf(pid, began)
				}
			}
		}
	}
}

// said does what a program says: its stubs have obeyed already. The caller holds mu. What can't be written ends the recording elsewhere.
func (r *recording) said(s collect.Said) {
	p := &r.paused
	_, is := p.selves[s.Process]
	switch {
	case s.Pause && is:
	case !s.Pause:
		if p.held != nil && p.held.atFirst {
			_ = r.end(s.Time)
			p.tellAll()
		}
		if is {
			r.endSelf(s.Process, s.Time)
		}
	case len(p.list) >= maxOwnPauses:
		p.selves[s.Process] = -1
		if !p.full {
			p.full = true
			r.notice("the program has paused its recording %d times: it goes on to do so, but the reel says of no more of them", len(p.list))
		}
	default:
		x := reel.Pause{From: s.Time, By: "program", Process: s.Process}
		p.selves[s.Process] = len(p.list)
		p.list = append(p.list, x)
		_ = r.first.out.paused(x)
	}
}

// endSelf ends a program's own pause. The caller holds mu.
func (r *recording) endSelf(pid int, to uint64) {
	p := &r.paused
	at := p.selves[pid]
	delete(p.selves, pid)
	if at < 0 {
		return
	}
	x := &p.list[at]
	x.To = max(to, x.From+1)
	_ = r.first.out.paused(*x)
}
