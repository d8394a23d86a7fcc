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
	Usual      bool   // that it writes nothing for so long
	// Began asks for calls of all functions that are chosen, not only of those that are off. It is always answered, as far as there is room.
	Began bool
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
	made      time.Time
	end       context.CancelFunc
	questions chan Question
	answers   chan Answer
	done      sync.WaitGroup
}

const (
	// beganTries is for how long it is tried to see what threads had open when recording began, and beganRest the time between: others may stop
	// one just then. Where its stack can't be walked it is looked at so often, since that stops it.
	beganTries = 4 * time.Second
	beganLooks = 5
	beganRest  = 2 * time.Millisecond
	// waiting is how many questions may wait; those beyond it aren't answered.
	waiting = 64
	// mostLooks is how many looks there are at most in a second: each may take some hundred microseconds.
	mostLooks = 200
)

// New begins.
func New(ctx context.Context, c Config) *Watch {
	ctx, end := context.WithCancel(ctx)
	w := &Watch{c: c, made: time.Now(), end: end, questions: make(chan Question, waiting), answers: make(chan Answer, waiting)}
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
	// What a first look takes, some tens of milliseconds for call frame information, is not to be taken when there is most to do.
	w.look(ctx, h, Question{TID: w.c.Process.Pid()})
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
	a.Question, a.Loose, a.Look.Within = q, q.Usual, q.Within
	frames, looked := w.frames(ctx, h, &a)
	for looks := 0; q.Began && len(frames) == 0 && time.Since(w.made) < beganTries; {
		if looked {
			if looks++; looks == beganLooks {
				break
			}
		}
		select {
		case <-ctx.Done():
			return a, true
		case <-time.After(beganRest):
		}
		frames, looked = w.frames(ctx, h, &a)
	}
	is := w.c.IsOff
	if q.Began {
		is = func(uint32) bool { return true }
	}
	a.Calls, seen = w.c.Functions().Within(frames, q.Within, is)
	return a, q.Began || seen && len(a.Calls) > 0
}

// frames are those on the thread's stack, none where it can't be walked. looked is false where others stop the process just now.
func (w *Watch) frames(ctx context.Context, h *sampler.Holder, a *Answer) (frames []unwind.Frame, looked bool) {
	looked = w.c.Undisturbed(func() {
		frames, a.Wait, _ = h.Glance(ctx, a.TID)
		a.Tick = w.c.Ticks() // what the thread writes before that may be later than the stack
	})
	return frames, looked
}
