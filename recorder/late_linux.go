package recorder

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/choose"
	"github.com/callreel/callreel/recorder/internal/mapped"
)

// lateChoice is what is recorded of libraries that are loaded later. What globs miss is not told any more.
type lateChoice struct {
	r      *recording
	ch     *choose.Chooser
	search *mapped.Search
	typed  func(im *object.Image) bool
	*lateFetches
}

func (r *recording) newLateChoice(ctx context.Context) lateChoice {
	typed, err := r.typed()
	if err != nil { // choosing has said so before
		typed = func(*object.Image) bool { return false }
	}
	ch := r.newChooser()
	return lateChoice{r, ch, r.newSearch(ch), typed, newLateFetches(ctx, r.opt.Choice.debugFiles())}
}

// Module says whether a module of that name is chosen.
func (c lateChoice) Module(name string) bool {
	defer c.ch.Forget()
	return c.ch.Module(name) && !c.r.opt.Choice.NoFunctions
}

// HasHooks says whether a file has functions to be hooked.
func (c lateChoice) HasHooks(p *process.Process, m process.Mapping) bool {
	return c.search.HasHooks(p, m) || c.search.HasNotes(p, m)
}

// Open plans the image behind a mapping.
func (c lateChoice) Open(ctx context.Context, p *process.Process, m process.Mapping, maps []process.Mapping) (*mapped.Image, error) {
	return c.search.Open(ctx, p, m, maps)
}

// Pick takes the functions of an image that are chosen, and what stubs need to know of them.
func (c lateChoice) Pick(ctx context.Context, im *mapped.Image, id uint32) (traced int, count func()) {
	r, s := c.r, c.r.s
	n := c.ch.Pick(im, id)
	r.triggers.Plan(ctx, im, r.notice)
	r.captures.PlanLate(ctx, im, s.MayRead, r.notice)
	r.waitCalls.Plan(im, r.captures.Table())
	marks := r.markers.Pick(ctx, im, s.MayRead, r.notice)
	s.Runtime.Captures, s.Runtime.Keeps = r.markers.AddTo(r.captures.Table()), r.waitCalls.Table()
	s.Runtime.MarkTriggers, s.Runtime.Says = r.markers.Parts(), r.markers.Says()
	c.ch.Forget()
	return n.Traced, func() {
		r.count(n)
		r.countMarkers(marks)
		if c.begun[im.Object.ID()] != nil {
			r.notice("%s is recorded from now on: its debug file has been fetched before", im.Module)
		}
	}
}

// Await lets what the image behind a mapping lacks be fetched, if that may make a difference to what is chosen of it, or to the values that
// are recorded. Where its own names choose functions, and nothing else is asked for, it is recorded at once: calls that are missed are worse.
func (c lateChoice) Await(im *mapped.Image, p *process.Process, m process.Mapping, ready func()) (done func() bool) {
	defer c.ch.Forget()
	types := c.typed(im.Object)
	chosen, asked := c.ch.Look(im)
	if chosen && !(types && asked) && !c.r.lacksFunctions() {
		return nil
	}
	return c.fetch(im.Object.ID(), types, ready, func() (*object.Image, error) {
		path, err := p.ExeFile(m)
		if err != nil {
			return nil, err
		}
		return object.Open(path)
	})
}

// lacksFunctions says whether a trigger or a value is about functions none of which has come yet.
func (r *recording) lacksFunctions() bool {
	return r.triggers.Check(nil, nil) != nil || r.captures.Check(nil, nil) != nil
}

// lateFetches are fetches of what libraries lack that were loaded while recording: one at a time, in the background. Neither the process nor
// a thread of it waits for them. They are begun and looked at by one goroutine.
type lateFetches struct {
	ctx    context.Context
	cancel context.CancelFunc
	files  DebugFiles
	begun  map[string]*atomic.Bool // that have ended, by build ID
	one    sync.Mutex
	all    sync.WaitGroup
}

// maxLateFetches bounds them: a process may load any number of libraries that claim any ID.
const maxLateFetches = 1 << 10

func newLateFetches(ctx context.Context, files DebugFiles) *lateFetches {
	ctx, cancel := context.WithCancel(ctx)
	return &lateFetches{ctx: ctx, cancel: cancel, files: files, begun: map[string]*atomic.Bool{}}
}

// fetch begins to fetch what the image of an ID lacks, once. ready is called when that has ended, and done says so; nil if there is nothing
// to wait for.
func (l *lateFetches) fetch(id string, types bool, ready func(), open func() (*object.Image, error)) (done func() bool) {
	if ended, begun := l.begun[id]; begun {
		if ended.Load() {
			return nil
		}
		return ended.Load
	}
	if id == "" || len(l.begun) >= maxLateFetches {
		return nil
	}
	o, err := open()
	if err != nil {
		return nil // it has gone meanwhile
	}
	if !l.files.Lacks(o, types) {
		_ = o.Close() // only looked at
		return nil
	}
	ended := new(atomic.Bool)
	l.begun[id] = ended
	l.all.Go(func() {
		defer o.Close() // only looked at
		l.one.Lock()
		defer l.one.Unlock()
		if l.ctx.Err() == nil {
			l.files.Fetch(l.ctx, o, types)
		}
		ended.Store(true)
		ready()
	})
	return ended.Load
}

// end ends all fetches.
func (l *lateFetches) end() {
	l.cancel()
	l.all.Wait()
}
