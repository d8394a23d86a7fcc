package recorder

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/callreel/callreel/recorder/internal/armed"
	"github.com/callreel/callreel/recorder/internal/capture"
	"github.com/callreel/callreel/recorder/internal/libraries"
	"github.com/callreel/callreel/recorder/internal/markers"
	"github.com/callreel/callreel/recorder/internal/probes"
	"github.com/callreel/callreel/recorder/internal/tables"
	"github.com/callreel/callreel/reel"
)

// moments is the reader of an armed recording, which keeps the last moments only.
type moments struct {
	r     *recording
	armed *Arming
	*armed.Loop
}

func (r *recording) newMoments(making *probes.Maker) *moments {
	o, out := r.opt.Armed, r.first.out.(*toFolder)
	m := &moments{r: r, armed: o}
	m.Loop = armed.New(armed.Config{Target: r.s, Triggers: r.triggers, Functions: r.functions.(*tables.Late), Values: dumpValues{r.captures}, WaitCalls: r.waitCalls, Marks: m.marks, Making: making,
		Switches: r.switches, Folder: out.folder, Catalog: &out.catalog, Couple: out.couple, Keep: o.Keep, Max: o.Max, Memory: int(r.past), Began: r.began,
		Scheduler: out.moments,
		Pauses:    r.paused.within, Offs: r.offWithin, Budget: r.budgetNow, Tally: r.newTally(), Naps: r.opt.Budget.Naps,
		TicksPerSecond: r.set.TicksPerSecond, Min: r.set.Min, Begun: m.begun, Dumped: m.dumped, Progress: m.progress, Notice: r.notice})
	return m
}

// setMemory says how much memory an armed recording may use for the past.
func (r *recording) setMemory() error {
	if r.opt.Armed == nil {
		return nil
	}
	available := availableMemory()
	switch r.past = r.opt.Armed.Memory; {
	case r.past == 0:
		r.past = max(MinMemory, min(DefaultMemory, available/4))
	case r.past < MinMemory:
		return fmt.Errorf("callreel: %w: %d KiB for the past are less than %d; give more with --memory", ErrRefused, r.past>>10, MinMemory>>10)
	case r.past > available/2:
		return fmt.Errorf("callreel: %w: %d MiB for the past are more than half of the %d MiB of memory that are available; give less with --memory",
			ErrRefused, r.past>>20, available>>20)
	}
	return nil
}

// dumpValues are the values of arguments in dumps.
type dumpValues struct{ *capture.Set }

// In returns what reads them for a dump.
func (v dumpValues) In(w armed.ArgumentsSink) armed.Decoder { return v.For(w) }

// marks returns what makes marks for a dump.
func (m *moments) marks(w markers.Taker) *markers.Decoder {
	return m.r.markers.For(markers.NewStore(w), m.r.images.Number)
}

func (m *moments) begun() {
	if begun := m.armed.Begun; begun != nil {
		begun(m.r.pid())
	}
}

func (m *moments) dumped(d armed.Dumped) {
	if dumped := m.armed.Dumped; dumped != nil {
		dumped(Dumped(d))
	}
}

func (m *moments) progress(p armed.Progress) {
	m.r.tell(Progress{Elapsed: p.Elapsed, Threads: p.Threads, Armed: true, Triggers: Triggers(p.Counts)})
}

func (m *moments) run(ctx context.Context) error {
	over, end := context.WithCancel(ctx)
	var forwarding sync.WaitGroup
	forwarding.Go(func() { m.forward(ctx, over) })
	defer forwarding.Wait() // who asks wakes the loop, by memory that goes when this has ended
	defer end()
	return m.Run(ctx)
}

// forward passes the requests of who has called Record on, until over ends. Of several processes the first has them, and others when it has
// ended.
func (m *moments) forward(ctx, over context.Context) {
	if c, ok := m.r.others.(*couple); ok && !m.r.isFirst() {
		select {
		case <-c.firstOver:
		case <-over.Done():
			return
		}
	}
	for {
		select {
		case q, open := <-m.armed.Requests:
			if !open {
				return
			}
			if !m.Ask(ctx, requestOf(q)) && q.Answer != nil {
				q.Answer(Dumped{}, errors.New("callreel: the recording has ended"))
			}
		case <-over.Done():
			return
		}
	}
}

func requestOf(q DumpRequest) armed.Request {
	return armed.Request{Kind: q.Kind, Condition: q.Condition, Detail: q.Detail, TID: q.TID, From: q.From, To: q.To, Keep: q.Keep,
		Answer: func(d armed.Dumped, err error) {
			if q.Answer != nil {
				q.Answer(Dumped(d), err)
			}
		}}
}

func (*moments) libraries() time.Duration { return libraries.Seldom }
func (m *moments) end(bool) error         { return m.End() }

func (m *moments) sum(to *Result) {
	to.Threads, to.Triggers = m.Threads(), Triggers(m.Counts())
	to.Past = Past(m.Past())
}

// dump waits for a dump that somebody has asked for.
func (m *moments) dump(ctx context.Context, q *dumpRequest) controlAnswer {
	if q.LastNS < 0 || q.Kind > reel.TriggerEnd {
		return controlAnswer{Error: "not a request for a dump"}
	}
	done := make(chan controlAnswer, 1)
	request := armed.Request{Kind: q.Kind, Condition: q.Condition, Detail: q.Detail, TID: q.TID, Keep: time.Duration(q.LastNS),
		Answer: func(d armed.Dumped, err error) {
			d.File = absolute(d.File)
			answer := controlAnswer{Dumped: Dumped(d)}
			if err != nil {
				answer.Error = err.Error()
			}
			done <- answer
		}}
	if q.FromNS > 0 {
		request.From = time.Unix(0, q.FromNS)
	}
	if q.ToNS > 0 {
		request.To = time.Unix(0, q.ToNS)
	}
	if !m.Ask(ctx, request) {
		return controlAnswer{Error: "the recording is just ending"}
	}
	return <-done
}

// replacements are the triggers that a request replaces, by their places.
func (m *moments) replacements(q *SetRequest) (map[int]Trigger, error) {
	triggers, by := m.r.triggers, map[int]Trigger{}
	for _, text := range q.When {
		t, err := ParseTrigger(text)
		if err != nil {
			return nil, err
		}
		at, why := triggers.Like(&t)
		if why != "" {
			return nil, notSettableAs("%s: %s", text, why)
		}
		by[at] = t
	}
	return by, nil
}

func (m *moments) set(q *SetRequest) error {
	switch {
	case q.Min > 0 && !m.r.s.Runtime.Min:
		return notSettableAs("--min can be changed of an armed recording that began with --min")
	case len(q.Threads) > 0:
		return notSettableAs("--threads can't be changed with --when and --follow")
	}
	by, err := m.replacements(q)
	if err != nil {
		return err
	}
	return m.Change(func() {
		if q.changesMin() {
			m.Min = m.r.setMin(q.Min)
		}
		if q.Keep > 0 {
			m.SetKeep(q.Keep)
		}
		m.Replace(by)
	})
}

// settle has nothing to wait for: what is in the rings stays there.
func (m *moments) settle() error { return nil }

// arm lets stubs know the conditions of an armed recording.
func (r *recording) arm() error {
	if r.opt.Armed == nil {
		return nil
	}
	return armed.Arm(r.s, r.triggers, r.set.TicksPerSecond)
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
