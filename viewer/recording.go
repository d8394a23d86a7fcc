package viewer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/timeline"
)

// recording is one reel that is served.
type recording struct {
	server *Server
	index  int // its place among the server's
	path   string
	name   string
	first  *reel.File // as opened; the timeline may have a newer one

	ready    chan struct{} // closed once the timeline is there, or failed
	timeline *timeline.Timeline
	err      error
	progress atomic.Uint64 // of building the index, in millionths
	told     rarely        // of that

	ours   bool          // this process writes it
	live   atomic.Bool   // is being written
	grew   atomic.Bool   // pages have been told that it did
	over   atomic.Bool   // and that it will no more
	finish chan struct{} // closed when this process has written its end
	once   sync.Once

	names    *names
	sources  *sources
	marks    atomic.Pointer[marked] // what the program said; nil: it isn't known yet
	marking  atomic.Uint64          // how much of that has been read, in millionths
	summed   atomic.Bool            // the states of threads are summed up, or views do it that need them
	seen     chan struct{}          // closed once a view has been answered
	seeing   sync.Once
	offViews offViews
	whole    wholeTally
	work     sync.WaitGroup // what runs in the background
}

const progressWhole = 1_000_000

func openRecording(s *Server, index int, path string, live bool) (*recording, error) {
	f, err := reel.Open(path)
	if err != nil {
		return nil, err
	}
	r := &recording{server: s, index: index, path: path, name: filepath.Base(path), first: f, ours: live, ready: make(chan struct{}), finish: make(chan struct{}), seen: make(chan struct{})}
	r.summed.Store(!f.HasStates() || f.Size() < summedAtOnce)
	r.live.Store(live && !f.Closed()) // a short recording may be over by now, and nothing will follow it
	if s.opt.Name != nil {
		s.opt.Name(f)
	}
	r.names = newNames(r)
	r.sources = newSources(s.opt.Store, s.opt.DebugDirs)
	return r, nil
}

// start makes the timeline in the background, and follows a reel that grows.
func (r *recording) start() {
	ctx := r.server.ctx
	r.work.Go(func() {
		look := beginLook()
		r.err = catchFaults(func() (err error) {
			r.timeline, err = timeline.Open(ctx, r.first, timeline.Options{Progress: r.indexing, Workers: r.workers()})
			return err
		})
		if r.err != nil {
			r.live.Store(false)
		}
		r.progress.Store(progressWhole) // pages wait for that, whatever has come of it
		close(r.ready)
		r.server.events.send("progress", progressEvent{Reel: r.index, Done: 1, Total: 1})
		if r.err == nil {
			r.readRest(ctx)
		}
		if r.err == nil && !r.first.Closed() {
			r.follow(ctx, look.cost())
		}
	})
	r.work.Go(func() { r.sources.run(ctx) })
}

const (
	// summedAtOnce is how large a reel may be, in bytes, for views to wait for the states of its threads, which takes milliseconds then.
	summedAtOnce = 4 << 20
	// firstView is for how long what isn't part of the first picture waits for that.
	firstView = 2 * time.Second
)

// readRest reads what the program said, and sums up the states of its threads: behind the answer to the first view, which would
// otherwise have to share the processors with it, as would the browser that draws it. So it leaves half of them.
func (r *recording) readRest(ctx context.Context) {
	if r.first.Size() >= summedAtOnce {
		late := time.NewTimer(firstView)
		defer late.Stop()
		select {
		case <-r.seen:
		case <-late.C:
		case <-ctx.Done():
			return
		}
	}
	var both sync.WaitGroup
	both.Go(func() { r.readMarks(ctx) })
	both.Go(func() {
		_ = catchFaults(func() error { return r.timeline.SumStates(ctx, max(1, r.workers()/2)) })
		r.summed.Store(true)
	})
	both.Wait()
}

// hasSeen says that a view has been answered.
func (r *recording) hasSeen() { r.seeing.Do(func() { close(r.seen) }) }

// workers is how many goroutines index. While this process records, half of the processors are left to what is recorded.
func (r *recording) workers() int {
	if r.ours {
		return max(1, runtime.GOMAXPROCS(0)/2)
	}
	return runtime.GOMAXPROCS(0)
}

// indexing tells how far the index is.
func (r *recording) indexing(done, total uint64) {
	if total == 0 || r.isOver() { // pages are told of what grows later in another way
		return
	}
	r.progress.Store(min(uint64(float64(done)/float64(total)*progressWhole), progressWhole-1))
	if r.told.again() {
		r.server.events.send("progress", progressEvent{Reel: r.index, Done: done, Total: total})
	}
}

// wait returns the timeline once it is there.
func (r *recording) wait(ctx context.Context) (*timeline.Timeline, error) {
	select {
	case <-r.ready:
		return r.timeline, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// isReady says whether the timeline is there.
func (r *recording) isReady() bool { return r.isOver() && r.err == nil }

// hasFailed says whether there will be none.
func (r *recording) hasFailed() bool { return r.isOver() && r.err != nil }

// isOver says whether making the timeline is.
func (r *recording) isOver() bool {
	select {
	case <-r.ready:
		return true
	default:
		return false
	}
}

// File is the reel as far as it is known.
func (r *recording) File() *reel.File {
	if r.isReady() {
		return r.timeline.File()
	}
	return r.first
}

// How a reel that grows is followed: looked at that often, and taken for abandoned when it hasn't grown for so long. A
// recorder writes at least five times a second when there are calls.
const (
	followEvery = 500 * time.Millisecond
	followQuiet = 10 * time.Second
	// followRest bounds what following takes, as the processors are the recorded program's: to a fifth of one.
	followRest = 5
)

// look is a look at what a reel has become. One at a reel of goroutines is at all of it, and takes longer each time.
type look struct {
	begun time.Time
	used  time.Duration // processor time of the process, by then
}

func beginLook() look { return look{time.Now(), cpuTime()} }

// cost is the processor time that it can have taken.
func (l look) cost() time.Duration {
	return costOf(time.Since(l.begun), cpuTime()-l.used, runtime.GOMAXPROCS(0))
}

// costOf is at most what the process has used meanwhile, for other things too, and what all processors together have to give. On
// a machine at work a look takes longer than it costs.
func costOf(took, used time.Duration, processors int) time.Duration {
	all := took * time.Duration(processors)
	if used > 0 {
		return min(used, all)
	}
	return all
}

// follow keeps up with a reel that is being written, by this process or another one, until it is closed. The first look at it
// had that cost.
func (r *recording) follow(ctx context.Context, cost time.Duration) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	size, grown, next := r.first.Size(), time.Now(), time.Now().Add(followRest*cost)
	for last := false; !last; {
		select {
		case <-ctx.Done():
			return
		case <-r.finish:
			last = true
		case <-tick.C:
		}
		if info, err := os.Stat(r.path); err == nil && info.Size() != size && (last || time.Now().After(next)) {
			size, grown = info.Size(), time.Now()
			look := beginLook()
			changed, err := r.look(ctx, last)
			if errors.Is(err, context.Canceled) {
				size = 0 // what there is is still to be seen
			}
			if err == nil && changed {
				r.live.Store(true)
				r.whole.set(nil, false)
				r.grew.Store(true)
				r.server.events.send("grown", r.grown())
			}
			next = time.Now().Add(followRest * look.cost())
			last = last || r.timeline.File().Closed()
		}
		if !r.ours && time.Since(grown) > followQuiet && time.Now().After(next) {
			r.live.Store(false)
		}
	}
	r.live.Store(false)
	r.over.Store(true)
	r.server.events.send("closed", reelEvent{r.index})
}

// look takes in what the reel has become. One that is not the last is given up when the recording ends, as the last one sees all.
func (r *recording) look(ctx context.Context, last bool) (changed bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !last {
		go func() {
			select {
			case <-r.finish:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	err = catchFaults(func() (err error) {
		changed, err = r.timeline.Refresh(ctx)
		return err
	})
	if err == nil && changed {
		r.readMarks(ctx)
	}
	return changed, err
}

// news is what a page that begins to listen may have missed since it asked how things are.
func (r *recording) news() []message {
	var list []message
	if r.grew.Load() {
		list = append(list, newMessage("grown", r.grown()))
	}
	if r.over.Load() {
		list = append(list, newMessage("closed", reelEvent{r.index}))
	}
	return list
}

// ended says that this process has written the reel's end.
func (r *recording) ended() { r.once.Do(func() { close(r.finish) }) }

func (r *recording) grown() grownEvent {
	return grownEvent{Reel: r.index, DurationNS: r.timeline.Duration(), Events: r.timeline.File().Events(), Lanes: len(r.timeline.Lanes())}
}

// calls is how many calls the reel holds, as far as is known.
func (r *recording) calls() (n uint64) {
	if !r.isReady() {
		return 0
	}
	for _, l := range r.timeline.Lanes() {
		n += l.Calls
	}
	return n
}

// close waits for what runs in the background, and closes the files.
func (r *recording) close() error {
	r.work.Wait()
	err := r.sources.close()
	if file := r.File(); file != r.first {
		err = errors.Join(err, file.Close())
	}
	if err = errors.Join(err, r.first.Close()); err != nil {
		return fmt.Errorf("viewer: %s: %w", r.path, err)
	}
	return nil
}

// The events that pages are told of.
type (
	progressEvent struct {
		Reel  int    `json:"reel"`
		Done  uint64 `json:"done"`
		Total uint64 `json:"total"`
	}
	grownEvent struct {
		Reel       int    `json:"reel"`
		DurationNS uint64 `json:"duration_ns"`
		Events     uint64 `json:"events"`
		Lanes      int    `json:"lanes"`
	}
	reelEvent struct {
		Reel int `json:"reel"`
	}
	analysisEvent struct {
		Ticket string `json:"ticket"`
		Done   uint64 `json:"done"`
		Total  uint64 `json:"total"`
	}
)
