package recorder

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// pauses are the times in which a recording was to record nothing.
type pauses struct {
	changing sync.Mutex // one at a time; it is taken before the others
	mu       sync.Mutex // guards list
	list     []reel.Pause
	on       bool // the last one goes on
}

// maxPauses bounds what is kept: the program itself may ask for them.
const maxPauses = 1 << 16

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

// pauseRequest asks a recorder to pause, or to go on.
type pauseRequest struct {
	By     string `json:"by"`
	Resume bool   `json:"resume,omitempty"`
}

// errFollows: children open their gates by themselves.
var errFollows = errors.New("a recording that follows children can't be paused: each of them begins to be recorded by itself")

// startPaused keeps the gates closed that are about to be opened for the first time.
func (r *recording) startPaused() error {
	if !r.opt.Paused {
		return nil
	}
	if r.opt.Follow {
		return fmt.Errorf("callreel: --paused: %w", errFollows)
	}
	r.s.StartPaused()
	return nil
}

// tellPaused writes into the reel that it begins with a pause.
func (r *recording) tellPaused() error {
	if !r.opt.Paused {
		return nil
	}
	return r.beginPause(r.base.BaseTick, "command")
}

func (r *recording) beginPause(from uint64, by string) error {
	p := &r.paused
	x := reel.Pause{From: from, By: by, Process: r.pid()}
	p.mu.Lock()
	p.on = true
	p.list = append(p.list, x)
	p.mu.Unlock()
	return r.out.paused(x)
}

// pause stops recording, without stopping the process, and returns when all that was recorded before has been taken from the rings. Threads
// that are within an event's code by then write that event still.
func (r *recording) pause(by string) error {
	p := &r.paused
	p.changing.Lock()
	defer p.changing.Unlock()
	switch {
	case r.opt.Follow:
		return errFollows
	case p.on:
		return nil
	case len(p.list) >= maxPauses:
		return fmt.Errorf("it has been paused %d times, and keeps no more of them", len(p.list))
	}
	if err := r.s.Pause(); err != nil {
		return err
	}
	if err := r.beginPause(ring.Ticks(), by); err != nil {
		return err
	}
	return r.reader.settle()
}

// resume goes on with recording.
func (r *recording) resume() error {
	p := &r.paused
	p.changing.Lock()
	defer p.changing.Unlock()
	if !p.on {
		return nil
	}
	to := ring.Ticks()
	if err := r.s.Resume(); err != nil {
		return err
	}
	p.mu.Lock()
	p.on = false
	x := &p.list[len(p.list)-1]
	x.To = to
	done := *x
	p.mu.Unlock()
	return r.out.paused(done)
}

// askedToPause answers who asks for it.
func (r *recording) askedToPause(q *pauseRequest) (a controlAnswer) {
	by := q.By
	if by != "page" {
		by = "command"
	}
	var err error
	if q.Resume {
		err = r.resume()
	} else {
		err = r.pause(by)
	}
	if err != nil {
		a.Error = err.Error()
	}
	return a
}

// AskToPause asks the recorder of a process to record nothing until it is asked to go on, and returns when that is in force. by is who asks:
// "command" or "page". Who is paused already stays so. An error wraps ErrNoRecorder where there is none.
func AskToPause(ctx context.Context, pid int, by string) error {
	_, err := ask(ctx, pid, controlRequest{Pause: &pauseRequest{By: by}})
	return err
}

// AskToResume asks the recorder of a process to go on, and returns when that is in force.
func AskToResume(ctx context.Context, pid int) error {
	_, err := ask(ctx, pid, controlRequest{Pause: &pauseRequest{Resume: true}})
	return err
}
