package recorder

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/callreel/callreel/recorder/internal/probes"
	"github.com/callreel/callreel/reel"
)

// setFilters changes what isn't about functions, all of it or nothing.
func (r *recording) setFilters(q *SetRequest) error {
	switch {
	case q.Min > 0 && q.NoMin:
		return notSettableAs("--min can't be two things")
	case q.changesMin() && r.opt.Follow:
		return notSettableAs("--min can't be changed with --follow")
	case q.Min > 0 && r.opt.Clock != reel.ClockFull:
		return notSettableAs("--min needs --clock full")
	case q.Min > 0 && (&Filters{Min: q.Min}).ticks(r.set.TicksPerSecond) == 0:
		return notSettableAs("--min %v is less than the clock can tell", q.Min)
	}
	return r.reader.set(q)
}

// setMin changes from which duration on calls are kept, and returns it in ticks. Whatever the stubs take back by either is not handed on
// yet.
func (r *recording) setMin(least time.Duration) uint64 {
	filters, memory := &r.opt.Filters, r.s.Memory
	filters.Min = least
	r.set.Min = filters.ticks(r.set.TicksPerSecond)
	memory.SetMin(r.set.Min)
	return r.set.Min
}

// askedToSet changes the recording, and those of the programs that its process's children run, as somebody has asked.
func (r *recording) askedToSet(q *SetRequest) (a controlAnswer) {
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
		if err = r.setFilters(q); err != nil {
			return a
		}
	}
	if !q.changesFunctions() {
		return a
	}
	count, failures, err := r.switches.Change(probes.Rule{All: q.All, Functions: q.Functions, Exclude: q.Exclude})
	a.Set = SetAnswer(count)
	if len(failures) > 0 { // not err: elsewhere it has been done
		a.Error = "not in force in " + told(failures)
	}
	return a
}

// told says in which processes functions could not be switched, and why.
func told(failures []probes.Failure) string {
	const most = 3
	var list []string
	for _, f := range failures[:min(len(failures), most)] {
		text := fmt.Sprintf("process %d: %v", f.PID, f.Err)
		if f.Again {
			text += ", and is tried again"
		}
		list = append(list, text)
	}
	text := strings.Join(list, "; ")
	if len(failures) > most {
		text += fmt.Sprintf("; and in %d more", len(failures)-most)
	}
	return text
}

// AskToSet asks the recorder of a process to change its recording, and returns when that is done: calls that begin from then on are
// recorded, or not, as was asked for. An error wraps ErrNoRecorder where there is none; a *NoMatchError says that a glob matches no
// function of the recording, and an error that wraps ErrNotSettable that there is something the recorder can't change.
func AskToSet(ctx context.Context, pid int, q SetRequest) (SetAnswer, error) {
	a, err := ask(ctx, pid, controlRequest{Set: &q})
	return a.Set, err
}
