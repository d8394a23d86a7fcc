package overdue

import (
	"context"
	"sync"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/sampler"
	"github.com/callreel/callreel/unwind"
)

// Question asks what a thread does: its ID as seen from here, and by the target's own count, and the call within which.
type Question struct {
	TID, NSTID int
	Within     Call   // none for all its stack
	Since      uint64 // the tick of its last event
}

// Answer is what was seen.
type Answer struct {
	Question
	Look
}

// Config says whose threads are looked at, and how.
type Config struct {
	Process *process.Process
	// Functions are those that are chosen.
	Functions func() *Functions
	// IsOff says whether a function's calls are not recorded now.
	IsOff func(id uint32) bool
	// Undisturbed calls a function while nobody else stops the process, or says that it can't now.
	Undisturbed func(func()) bool
	Ticks       func() uint64
}

// Watch looks at threads when it is asked, in a goroutine of its own.
type Watch struct {
	c         Config
	end       context.CancelFunc
	questions chan Question
	answers   chan Answer
	done      sync.WaitGroup
}

const (
	// waiting is how many questions may wait; those beyond it aren't answered.
	waiting = 64
	// mostLooks is how many looks there are at most in a second: each may take some hundred microseconds.
	mostLooks = 200
)

// New begins.
func New(ctx context.Context, c Config) *Watch {
	ctx, end := context.WithCancel(ctx)
	w := &Watch{c: c, end: end, questions: make(chan Question, waiting), answers: make(chan Answer, waiting)}
	w.done.Go(func() { w.run(ctx) })
	return w
}

// Close ends it.
func (w *Watch) Close() {
	w.end()
	w.done.Wait()
}

// Ask asks what a thread does. It doesn't wait; false says that the question isn't answered.
func (w *Watch) Ask(q Question) bool {
	select {
	case w.questions <- q:
		return true
	default:
		return false
	}
}

// Answers calls yield with what there is to tell.
func (w *Watch) Answers(yield func(Answer) bool) {
	for {
		select {
		case a := <-w.answers:
			if !yield(a) {
				return
			}
		default:
			return
		}
	}
}

func (w *Watch) run(ctx context.Context) {
	h, err := sampler.NewHolder(ctx, w.c.Process, sampler.Options{NoNames: true})
	if err != nil {
		return
	}
	defer func() { _ = h.Close() }()
	left, from := mostLooks, time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case q := <-w.questions:
			if now := time.Now(); now.Sub(from) >= time.Second {
				left, from = mostLooks, now
			}
			if left--; left < 0 {
				continue
			}
			if a, seen := w.look(ctx, h, q); seen {
				select {
				case w.answers <- a:
				default: // nobody reads them now
				}
			}
		}
	}
}

// look takes a thread's stack.
func (w *Watch) look(ctx context.Context, h *sampler.Holder, q Question) (a Answer, seen bool) {
	var frames []unwind.Frame
	a.Question = q
	if !w.c.Undisturbed(func() {
		frames, _ = h.Glance(ctx, q.TID)
		a.Tick = w.c.Ticks() // what the thread writes before that may be later than the stack
	}) {
		return a, false
	}
	a.Calls, seen = w.c.Functions().Within(frames, q.Within, w.c.IsOff)
	return a, seen && len(a.Calls) > 0
}
