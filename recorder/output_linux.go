package recorder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/callreel/callreel/internal/outfile"
	"github.com/callreel/callreel/recorder/internal/armed"
	"github.com/callreel/callreel/recorder/internal/collect"
	"github.com/callreel/callreel/recorder/internal/markers"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/scheduling"
	"github.com/callreel/callreel/recorder/internal/tables"
	"github.com/callreel/callreel/reel"
)

// output is where a recording goes.
type output interface {
	// check finds out, before the process is touched, whether it can be made.
	check() error
	// begin makes it.
	begin(header func() (reel.Header, error)) error
	// tables takes images and functions, sink the events, and arguments, if not nil, what is recorded of functions' arguments.
	tables() tables.Reel
	sink() collect.Sink
	arguments() ArgumentsTaker
	// markers, if not nil, takes markers.
	markers() markers.Taker
	// watch takes what the scheduler does from when a recording is on; w is nil where nobody wants to know.
	watch(w *scheduling.Watch, r *recording) error
	// written is how large it is, in bytes.
	written() int64
	// made says how many calls of each function there were, of which one in every is recorded.
	made(every uint32, calls map[uint32]uint64) error
	// paused is told of a time in which nothing is recorded, when it begins and when it has ended.
	paused(p reel.Pause) error
	// off is told of times in which functions were off, by the numbers of tables, when they begin and again when they have ended; budget of how
	// a budget is kept.
	off(list []FunctionOff) error
	budget(b reel.Budget) error
	budgetTaker() BudgetTaker // that wants to know it all the time, else nil
	// abandon removes it, as recording has not begun.
	abandon() error
	// end is called when the process has been left, with what has gone wrong until then. It returns that, and what goes wrong besides.
	end(ctx context.Context, res *Result, err error) error
}

func (r *recording) newOutput() output {
	switch {
	case r.opt.Armed != nil:
		f := &toFolder{folder: armed.Folder{Path: r.opt.Output, Force: r.opt.Force, Mode: r.opt.Mode}}
		if r.isCoupled() {
			f.couple = armed.NewCouple(1 + len(r.opt.Armed.With))
		}
		return f
	case r.opt.To != nil:
		return &toCaller{to: r.opt.To}
	}
	return &toFile{r: r}
}

// toFile is a reel.
type toFile struct {
	r      *recording
	w      *reel.Writer     // nil before begin, and once it is abandoned
	states *scheduling.Reel // nil if nobody watches the scheduler
}

func (o *toFile) check() error {
	opt := &o.r.opt
	path := opt.Output
	err := outfile.Check(path, outfile.Options{Force: opt.Force})
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("callreel: %s: %w; choose another name with -o, or replace it with --force", path, fs.ErrExist)
	case err != nil:
		return fmt.Errorf("callreel: the reel can't be made: %w", err)
	}
	return nil
}

func (o *toFile) begin(header func() (reel.Header, error)) error {
	h, err := header()
	if err != nil {
		return err
	}
	opt := &o.r.opt
	if o.w, err = reel.Create(opt.Output, h, reel.Options{Force: opt.Force, Mode: opt.Mode}); err != nil {
		return err
	}
	if every := opt.Filters.Every; every > 1 {
		return o.w.Made(every, nil)
	}
	return nil
}

func (o *toFile) tables() tables.Reel       { return o.w }
func (o *toFile) sink() collect.Sink        { return reelSink{o.w, o.states} }
func (o *toFile) arguments() ArgumentsTaker { return o.w }
func (o *toFile) markers() markers.Taker    { return o.w }
func (o *toFile) written() int64            { return o.w.Stats().Bytes }

func (o *toFile) made(every uint32, calls map[uint32]uint64) error { return o.w.Made(every, calls) }

func (o *toFile) paused(p reel.Pause) error  { return o.w.Pause(p) }
func (o *toFile) budget(b reel.Budget) error { return o.w.Budget(b) }
func (o *toFile) budgetTaker() BudgetTaker   { return nil }

func (o *toFile) off(list []FunctionOff) error {
	offs := make([]reel.Off, len(list))
	for i := range list {
		offs[i] = list[i].Off
	}
	return o.w.Off(offs)
}

func (o *toFile) abandon() error {
	w := o.w
	if o.w = nil; w == nil {
		return nil
	}
	return w.Abandon()
}

func (o *toFile) watch(w *scheduling.Watch, r *recording) (err error) {
	switch {
	case w == nil:
	case o.states != nil:
		o.states.Add(r.pid())
	default:
		o.states, err = w.Into(o.w, r.opt.Filters.Threads, r.began, r.pid())
	}
	return err
}

// end adds the index, and closes the reel.
func (o *toFile) end(ctx context.Context, res *Result, err error) error {
	if err == nil {
		o.r.index(ctx, o.w)
	}
	if cerr := o.w.Close(); err == nil {
		err = cerr
	}
	res.Bytes = o.written()
	if err != nil {
		o.countWritten(res)
	}
	return err
}

// countWritten corrects the counts when the reel has ended before the recording, for want of room on disk, say: they are
// of what can be read.
func (o *toFile) countWritten(res *Result) {
	f, err := o.w.Open()
	if err != nil {
		return
	}
	defer f.Close()
	s := reel.Summarize(f, reel.SummaryOptions{})
	if s.Events < res.Events {
		o.r.notice("%d calls that were made before the end are not in the reel", res.Calls-min(s.Calls, res.Calls))
		res.Calls, res.Events = s.Calls, s.Events
	}
}

// toCaller is the Destination of who has called Record.
type toCaller struct {
	to    Destination
	begun bool
}

func (o *toCaller) check() error { return nil }

func (o *toCaller) begin(header func() (reel.Header, error)) error {
	h, err := header()
	if err != nil {
		return err
	}
	o.begun = true
	return o.to.Begin(h)
}

func (o *toCaller) tables() tables.Reel { return o.to }
func (o *toCaller) sink() collect.Sink  { return callerSink{o.to} }

func (o *toCaller) arguments() ArgumentsTaker {
	to, _ := o.to.(ArgumentsTaker)
	return to
}

func (o *toCaller) markers() markers.Taker {
	to, _ := o.to.(MarkersTaker)
	return to
}

func (o *toCaller) watch(*scheduling.Watch, *recording) error { return nil }
func (o *toCaller) written() int64                            { return 0 }
func (o *toCaller) made(uint32, map[uint32]uint64) error      { return nil }
func (o *toCaller) paused(reel.Pause) error                   { return nil }

func (o *toCaller) budgetTaker() BudgetTaker {
	to, _ := o.to.(BudgetTaker)
	return to
}

func (o *toCaller) off(list []FunctionOff) error {
	to := o.budgetTaker()
	list = slices.DeleteFunc(slices.Clone(list), func(f FunctionOff) bool { return f.last })
	if to == nil || len(list) == 0 {
		return nil
	}
	return to.FunctionsOff(list)
}

func (o *toCaller) budget(b reel.Budget) error {
	if to := o.budgetTaker(); to != nil {
		return to.Budget(b)
	}
	return nil
}

func (o *toCaller) abandon() error {
	if !o.begun {
		return nil
	}
	o.begun = false
	return o.to.Close()
}

func (o *toCaller) end(_ context.Context, _ *Result, err error) error {
	if cerr := o.to.Close(); err == nil {
		err = cerr
	}
	return err
}

// toFolder is the folder of an armed recording's dumps.
type toFolder struct {
	folder  armed.Folder
	catalog armed.Catalog
	moments *scheduling.Moments // nil if nobody watches the scheduler
	couple  *armed.Couple       // nil unless dumps are of several processes
}

func (o *toFolder) check() error { return o.folder.Check() }

func (o *toFolder) begin(header func() (reel.Header, error)) error {
	h, err := header()
	if err != nil {
		return err
	}
	o.catalog.Begin(h)
	return nil
}

func (o *toFolder) tables() tables.Reel       { return &o.catalog }
func (o *toFolder) sink() collect.Sink        { return nil } // dumps are made, and nothing else comes
func (o *toFolder) arguments() ArgumentsTaker { return nil }
func (o *toFolder) markers() markers.Taker    { return nil }

func (o *toFolder) watch(w *scheduling.Watch, r *recording) error {
	switch {
	case w == nil:
	case o.moments != nil:
		o.moments.Add(r.pid())
	default:
		o.moments = w.Keep(r.began, r.pid(), uint64(r.set.Chunks)*ring.ChunkSize, r.past)
	}
	return nil
}

func (o *toFolder) written() int64                                  { return 0 }
func (o *toFolder) made(uint32, map[uint32]uint64) error            { return nil }
func (o *toFolder) paused(reel.Pause) error                         { return nil } // dumps have those that they overlap
func (o *toFolder) off([]FunctionOff) error                         { return nil } // likewise
func (o *toFolder) budget(reel.Budget) error                        { return nil }
func (o *toFolder) budgetTaker() BudgetTaker                        { return nil }
func (o *toFolder) abandon() error                                  { return nil }
func (o *toFolder) end(_ context.Context, _ *Result, e error) error { return e }

// part is the output of a recording that goes into another's: that one begins it, and ends it.
type part struct{ output }

func (part) check() error                                    { return nil }
func (part) begin(func() (reel.Header, error)) error         { return nil }
func (part) abandon() error                                  { return nil }
func (part) end(_ context.Context, _ *Result, e error) error { return e }

// reelSink is a reel as the collector's sink. States, if not nil, has the threads that the scheduler has told of.
type reelSink struct {
	*reel.Writer
	states *scheduling.Reel
}

func (reelSink) Round(uint64) error { return nil }

func (s reelSink) Thread(about reel.Thread) (collect.ThreadSink, error) {
	if s.states != nil {
		return asThreadSink(s.states.Thread(about))
	}
	w, err := s.Writer.Thread(about)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// callerSink is a Destination as the collector's sink.
type callerSink struct{ Destination }

func (s callerSink) Thread(about reel.Thread) (collect.ThreadSink, error) {
	return s.Destination.Thread(about)
}
