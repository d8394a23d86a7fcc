package recorder

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/callreel/callreel/reel"
)

// setFilters changes what isn't about functions, all of it or nothing.
func (r *recording) setFilters(q *SetRequest, held *armed) error {
	triggers, err := r.canSet(q, held)
	if err != nil {
		return err
	}
	var changed error
	change := func(d *drain) {
		if q.changesMin() {
			r.filtered.Store(true)
			d.drainer.SetLeast(r.setMin(q.Min))
		}
		if len(q.Threads) > 0 {
			changed = d.setThreads(q.Threads)
		}
	}
	if held != nil {
		return held.change(func() {
			if q.changesMin() {
				r.setMin(q.Min)
			}
			if q.Keep > 0 {
				held.o.Keep = q.Keep
			}
			r.triggers.Replace(triggers)
			r.triggers.WriteTo(held.watches, r.set.TicksPerSecond)
		})
	}
	if !r.switches.rounds.after(r.switches.over, change) {
		return r.switches.notDone()
	}
	return changed
}

// canSet says why the recording can't be changed so; nil if it can. triggers are those of q.When, by their places.
func (r *recording) canSet(q *SetRequest, held *armed) (triggers map[int]Trigger, err error) {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrNotSettable, fmt.Sprintf(format, args...))
	}
	switch {
	case q.Min > 0 && q.NoMin:
		return nil, refuse("--min can't be two things")
	case q.changesMin() && r.tree != nil:
		return nil, refuse("--min can't be changed with --follow")
	case q.Min > 0 && held != nil && !r.s.Runtime.Min:
		return nil, refuse("--min can be changed of an armed recording that began with --min")
	case q.Min > 0 && r.opt.Clock != reel.ClockFull:
		return nil, refuse("--min needs --clock full")
	case len(q.Threads) > 0 && (held != nil || r.tree != nil):
		return nil, refuse("--threads can't be changed with --when and --follow")
	case (q.Keep > 0 || len(q.When) > 0) && held == nil:
		return nil, refuse("it isn't armed (record --when)")
	}
	if q.Min > 0 && (&Less{Min: q.Min}).ticks(r.set.TicksPerSecond) == 0 {
		return nil, refuse("--min %v is less than the clock can tell", q.Min)
	}
	triggers = map[int]Trigger{}
	for _, text := range q.When {
		t, err := ParseTrigger(text)
		if err != nil {
			return nil, err
		}
		at, why := r.triggers.Like(&t)
		if why != "" {
			return nil, refuse("%s: %s", text, why)
		}
		triggers[at] = t
	}
	return triggers, nil
}

// setMin changes from which duration on calls are kept, in ticks. Whatever the stubs take back by either is not handed on yet.
func (r *recording) setMin(least time.Duration) uint64 {
	l := &r.opt.Less
	l.Min = least
	r.set.Min = l.ticks(r.set.TicksPerSecond)
	r.s.Memory.SetMin(r.set.Min)
	return r.set.Min
}

// setThreads changes which threads are recorded.
func (d *drain) setThreads(globs []string) error {
	d.r.opt.Less.Threads = globs
	for nstid, k := range d.known {
		if d.r.opt.Less.wants(k.name) != (k.DestinationThread != nil) {
			if err := d.renamed(nstid, k); err != nil {
				return err
			}
		}
	}
	if live := d.firstTasks(); live != nil {
		d.stillOff(live, true)
	}
	return nil
}

// change calls f in the loop.
func (a *armed) change(f func()) error {
	done := make(chan struct{})
	for {
		a.watches.Wake()
		select {
		case a.changes <- func() { f(); close(done) }:
			<-done
			return nil
		case <-a.over:
			return errors.New("the recording is just ending")
		case <-time.After(time.Millisecond):
		}
	}
}

// askedToSet changes the recording, and those of the programs that its process's children run, as somebody has asked.
func (r *recording) askedToSet(q *SetRequest, held *armed) (a controlAnswer) {
	var err error
	defer func() {
		if err != nil {
			a.Error = err.Error()
			a.NotSettable = errors.Is(err, ErrNotSettable)
			errors.As(err, &a.NoMatch)
		}
	}()
	if !q.changesFunctions() && !q.changesFilters() {
		err = fmt.Errorf("%w: it doesn't know what is to be changed: it is another version of callreel", ErrNotSettable)
		return a
	}
	if q.changesFilters() {
		if err = r.setFilters(q, held); err != nil {
			return a
		}
	}
	if !q.changesFunctions() {
		return a
	}
	a.Set, err = r.switches.change(SetRequest{All: q.All, Functions: q.Functions, Exclude: q.Exclude})
	if r.tree == nil || err != nil {
		return a
	}
	var failed []string
	for _, sub := range r.tree.others() {
		done, e := sub.switches.catchUp()
		a.Set.add(done)
		switch {
		case e == nil:
		case errors.Is(e, ErrNotSettable):
			failed = append(failed, fmt.Sprintf("process %d: %v", sub.s.Process.Pid(), e))
		default:
			failed = append(failed, fmt.Sprintf("process %d: %v, and is tried again", sub.s.Process.Pid(), e))
		}
	}
	if len(failed) > 0 { // not err: elsewhere it has been done
		const most = 3
		a.Error = "not in force in " + strings.Join(failed[:min(len(failed), most)], "; ")
		if len(failed) > most {
			a.Error += fmt.Sprintf("; and in %d more", len(failed)-most)
		}
	}
	return a
}

// AskToSet asks the recorder of a process to change its recording, and returns when that is done: calls that begin from then on are
// recorded, or not, as was asked for. An error wraps ErrNoRecorder where there is none; a *NoMatchError says that a glob matches no
// function of the recording, and an error that wraps ErrNotSettable that there is something the recorder can't change.
func AskToSet(ctx context.Context, pid int, q SetRequest) (SetAnswer, error) {
	a, err := ask(ctx, pid, controlRequest{Set: &q})
	return a.Set, err
}
