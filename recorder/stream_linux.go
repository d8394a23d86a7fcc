package recorder

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/callreel/callreel/recorder/internal/collect"
	"github.com/callreel/callreel/recorder/internal/libraries"
	"github.com/callreel/callreel/recorder/internal/probes"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// newReader returns what takes the events of a recording that is on.
func (r *recording) newReader(making *probes.Maker, family family) reader {
	if r.opt.Armed != nil {
		return r.newMoments(making)
	}
	return &stream{r, collect.New(collect.Config{Target: r.s, Sink: r.out.sink(), Functions: r.functions, Values: r.values, WaitCalls: r.waitCalls, Marks: r.marked,
		GoMarks: r.isGo() && !r.markers.Empty(), Tally: r.newTally(), Naps: r.opt.Budget.Naps, Began: r.began, Since: r.since,
		Making: making, Switches: r.switches, Processes: family, Threads: r.opt.Filters.Threads, Off: r.keptOff, Min: r.set.Min,
		Chunks: r.set.Chunks, GoesOn: r.opt.Follow, Said: r.obeys(), Notice: r.notice, Progress: r.tellCollected})}
}

func (r *recording) tellCollected(p collect.Progress) {
	r.tell(Progress{Elapsed: p.Elapsed, Calls: p.Calls, Dropped: p.Dropped, Bytes: r.out.written(), Threads: p.Threads})
}

// stream is the reader of a recording that writes all down.
type stream struct {
	r *recording
	*collect.Collector
}

func (s *stream) run(ctx context.Context) error { return s.Run(ctx) }
func (s *stream) libraries() time.Duration      { return libraries.Soon }
func (s *stream) end(gone bool) error           { return errors.Join(s.Finish(gone), s.r.tellMade()) }

func (s *stream) sum(to *Result) {
	t := s.Totals()
	r := s.r
	events, entries := r.switches.Omitted()
	to.Calls, to.Events, to.Dropped = t.Entries-entries, t.Events-events, t.Dropped
	to.Marks = t.Marks - s.Sayings()
	to.LostExits, to.Torn, to.Threads = t.LostExits, t.Torn, t.Threads
	if to.Budget != nil {
		to.Budget.Seen = s.Seen()
	}
	to.Ring = int64(r.set.Chunks) * ring.ChunkSize
	if t.Dropped > 0 {
		enough := ring.Enough(uint64(to.Ring), t)
		to.RingEnough, to.Scarce = int64(enough), enough > availableMemory()/2
	}
	if threads := r.opt.Filters.Threads; t.Threads == 0 && len(threads) > 0 && r.isFirst() {
		r.notice("no thread that --threads %s matches has called a chosen function", strings.Join(threads, ", "))
	}
}

func (s *stream) dump(context.Context, *dumpRequest) controlAnswer {
	opt := &s.r.opt
	if opt.To != nil {
		return controlAnswer{Error: "it only counts calls (callreel top) and keeps none"}
	}
	return controlAnswer{Error: "it isn't armed (record --when): all that it records is in " + absolute(opt.Output)}
}

func (s *stream) set(q *SetRequest) (err error) {
	r, switches := s.r, s.r.switches
	switch {
	case q.Keep > 0 || len(q.When) > 0:
		return notSettableAs("it isn't armed (record --when)")
	case r.opt.Follow && len(q.Threads) > 0:
		return notSettableAs("--threads can't be changed with --when and --follow")
	}
	done := switches.InLoop(func() {
		if q.changesMin() {
			switches.LeaveExits()
			s.SetMin(r.setMin(q.Min))
		}
		if len(q.Threads) > 0 {
			r.opt.Filters.Threads = q.Threads
			err = s.SetThreads(q.Threads)
		}
	})
	return errors.Join(done, err)
}

func (s *stream) settle() error { return s.r.switches.InLoop(func() {}) }

// notSettableAs wraps ErrNotSettable.
func notSettableAs(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNotSettable, fmt.Sprintf(format, args...))
}

// tellMade puts into the reel how many calls of each function there were, where not all are recorded.
func (r *recording) tellMade() error {
	every, memory := r.s.Every(), r.s.Memory
	if every == 0 {
		return nil
	}
	made := map[uint32]uint64{}
	for id := uint32(1); id < r.nextID; id++ {
		calls := memory.Count(id)
		if calls == 0 {
			continue
		}
		e := [1]reel.Event{{Word: id << 1}}
		if err := r.functions.Translate(e[:]); err != nil {
			return err
		}
		made[e[0].Word>>1] += calls
	}
	return r.out.made(every, made)
}
