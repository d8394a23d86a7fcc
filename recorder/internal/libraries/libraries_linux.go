package libraries

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/linkmap"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/pace"
	"github.com/callreel/callreel/recorder/internal/probes"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/tables"
	"github.com/callreel/callreel/recorder/internal/target"
	"github.com/callreel/callreel/reel"
)

// How often libraries are looked for.
const (
	// Soon is the usual Interval: a look takes some microseconds. Seldom is that of a recording which is to cost next to nothing.
	Soon   = 10 * time.Millisecond
	Seldom = 250 * time.Millisecond
	// mapsInterval is how soon, at the soonest, the mappings are looked at though the list has not changed: there are other lists
	// (dlmopen), and code that is mapped by other means.
	mapsInterval = time.Second
	// restTimes is how many times as long as the last looking took nothing is done then, and standTimes as long as
	// the process was stopped for it.
	restTimes  = 20
	standTimes = 50
	mapsTimes  = 200 // the same for reading the mappings though nothing seems to have changed
)

// Bounds of what libraries that come may take.
const (
	maxLateFunctions = 1 << 20
	maxAttempts      = 3 // at one image
	maxMarks         = 8 // looked at at a time
	// maxRenewals is how often a library that has imports is recorded when it comes again: each time takes another arena.
	maxRenewals = 100
)

// Config says of which process libraries are recorded, and how.
type Config struct {
	Target *target.Target
	Making *probes.Maker
	Choice Choice
	// Images and Functions are the reel's tables.
	Images    *tables.Images
	Functions tables.Functions
	// Arm lets stubs know which triggers new functions have.
	Arm func() error
	// Next is the ID that the next function gets.
	Next uint32
	// Interval is how soon, at the soonest, the loader's list is looked at again.
	Interval time.Duration
	// Notice tells what the user should know.
	Notice func(format string, args ...any)
}

// Choice says what of a library is recorded.
type Choice interface {
	// Module says whether a module of that name is recorded.
	Module(name string) bool
	// HasHooks says whether a file that a process has mapped has functions that are hooked though nothing of it is recorded.
	HasHooks(p *process.Process, m process.Mapping) bool
	// Open plans the image behind a mapping; nil if that is none.
	Open(ctx context.Context, p *process.Process, m process.Mapping, maps []process.Mapping) (*mapped.Image, error)
	// Await says whether an image is to be looked at again later, because what tells of its functions is being fetched: done says when that has
	// ended, before ready is called by another goroutine. nil if there is nothing to wait for.
	Await(im *mapped.Image, p *process.Process, m process.Mapping, ready func()) (done func() bool)
	// Pick takes the functions of an image that are recorded, and says how many they are. Their IDs begin with id. count is called when they
	// are on.
	Pick(ctx context.Context, im *mapped.Image, id uint32) (traced int, count func())
}

// Counts is what came and went while recording.
type Counts struct {
	Loaded   int // times that a library's functions were probed
	Unloaded int // times that a probed library was found gone
	Stops    int // that this took
	// Stopped is how long the process was stopped for all of it, Longest the longest stop.
	Stopped, Longest time.Duration
}

// Libraries looks which libraries come and go. While it runs it alone changes which images and arenas the target has.
type Libraries struct {
	Config
	list *linkmap.List // nil if there is none
	// seen are the mappings of files that are not recorded.
	seen map[mapped.Place]bool
	// awaited are those of them that are looked at again when this says so.
	awaited map[mapped.Place]func() bool
	// marks are a site of each image that may go, and is there, of which some are looked at each time.
	marks  []process.Vec
	marked [][]byte // the bytes there
	taken  uint64   // Target.Taken when they were chosen
	turn   int
	took   Counts
	loads  loads
	last   time.Time     // that the mappings were looked at
	every  time.Duration // see mapsInterval
	most   uint32        // function ID
	cancel context.CancelFunc
	done   chan struct{}
}

// Start begins to look for libraries. searched are the mappings among which the images were found that recording began with.
func Start(ctx context.Context, c Config, searched []process.Mapping) *Libraries {
	l := &Libraries{Config: c, seen: map[mapped.Place]bool{}, awaited: map[mapped.Place]func() bool{}, done: make(chan struct{})}
	l.list = linkmap.Find(c.Target.Process)
	l.loads = newLoads(c.Target)
	l.last, l.every = time.Now(), mapsInterval
	l.most = min(c.Next+maxLateFunctions, reel.MaxID)
	if c.Target.Lazy() {
		l.most = min(l.most, ring.MaxFunctions-1)
	}
	for i := range searched {
		if m := &searched[i]; mapped.IsCode(m) && l.imageAt(m) == nil {
			l.seen[mapped.PlaceOf(m)] = true
		}
	}
	ctx, l.cancel = context.WithCancel(ctx)
	go l.run(ctx)
	return l
}

// End ends the looking, and waits for that. It returns what came and went, and the ID that the next function would get.
func (l *Libraries) End() (Counts, uint32) {
	l.cancel()
	<-l.done
	return l.took, l.Next
}

func (l *Libraries) run(ctx context.Context) {
	defer close(l.done)
	least := l.Interval
	defer l.loads.pass()
	defer l.loads.listen(ctx)()
	for rest := least; ; {
		told := l.loads.wait(ctx, pace.Rest(time.Now(), rest))
		if ctx.Err() != nil || l.Target.Sandboxed() {
			return
		}
		start, stopped := time.Now(), l.took.Stopped
		err := l.look(ctx, told)
		l.loads.seen()
		if err != nil {
			return // the process or the recording has ended
		}
		rest = max(least, restTimes*time.Since(start), standTimes*(l.took.Stopped-stopped))
	}
}

func (l *Libraries) process() *process.Process { return l.Target.Process }

// look finds out whether anything has changed, and follows it. told says that something has.
func (l *Libraries) look(ctx context.Context, told bool) error {
	if !told && time.Since(l.last) < l.every && !l.changed() {
		return nil
	}
	if l.list != nil {
		l.list.Follow()
	}
	start := time.Now()
	maps, err := l.process().Maps()
	if err != nil {
		return err
	}
	if !l.Target.Holds(maps) {
		return process.ErrExec
	}
	l.last = time.Now()
	l.every = max(mapsInterval, mapsTimes*l.last.Sub(start))
	if err := l.forget(maps); err != nil {
		return err
	}
	err = l.add(ctx, maps)
	l.mark()
	return err
}

// changed says whether the loader's list has changed, or a site is not what it was: a library may have gone and another
// come, at the same place and with the same entry in the list.
func (l *Libraries) changed() bool {
	if l.list != nil && l.list.Changed() {
		return true
	}
	if l.taken != l.Target.Taken() { // those that are looked at may be gone on purpose
		l.mark()
	}
	if l.turn >= len(l.marks) {
		l.turn = 0
	}
	from, to := l.turn, min(l.turn+maxMarks, len(l.marks))
	l.turn = to
	n, _ := l.process().ReadVec(l.marks[from:to])
	same := n == to-from
	for i := from; i < to && same; i++ {
		same = string(l.marks[i].Buf) == string(l.marked[i])
	}
	if same {
		return false
	}
	still := false
	l.Target.Undisturbed(func() { still = l.taken == l.Target.Taken() })
	return still // else it has been taken out just now, maybe
}

// mark chooses the sites to look at, or none while some are being written: it does so anew by the next look then.
func (l *Libraries) mark() {
	l.marks, l.marked, l.taken = l.marks[:0], l.marked[:0], math.MaxUint64
	l.Target.Undisturbed(func() {
		l.taken = l.Target.Taken()
		for _, im := range l.Target.Images {
			if !im.Unloadable || im.Gone || !im.IsPatched() {
				continue
			}
			if addr, bytes, ok := im.Witness(l.Target.IsWritten); ok {
				l.marks = append(l.marks, process.Vec{Addr: addr, Buf: make([]byte, len(bytes))})
				l.marked = append(l.marked, bytes)
			}
		}
	})
}

// forget notes which images are gone: their sites with them. Where one site is left the image is still taken for there,
// though somebody else may have changed others.
func (l *Libraries) forget(maps []process.Mapping) (err error) {
	l.Target.WhenUndisturbed(func() {
		for _, im := range l.Target.Images {
			if !im.Unloadable || im.Gone || !im.IsPatched() {
				continue
			}
			there := false
			if im.IsThere(maps) {
				there, err = im.HasSites(l.Target.Process, l.Target.IsWritten)
				if errors.Is(err, process.ErrNoProcess) || errors.Is(err, process.ErrExec) {
					return
				}
				err = nil
			}
			if !there {
				im.Gone = true
				l.took.Unloaded++
			}
		}
	})
	return err
}

// imageAt is the image that a mapping belongs to, one that is gone not counted.
func (l *Libraries) imageAt(m *process.Mapping) *mapped.Image {
	for _, im := range l.Target.Images {
		if im.Gone {
			continue
		}
		for i := range im.Text {
			if mapped.PlaceOf(&im.Text[i]) == mapped.PlaceOf(m) {
				return im
			}
		}
	}
	return nil
}

// add probes what has come.
func (l *Libraries) add(ctx context.Context, maps []process.Mapping) error {
	for name, done := range l.awaited {
		if done() {
			delete(l.awaited, name)
			delete(l.seen, name)
		}
	}
	now := map[mapped.Place]bool{}
	var c target.Change
	l.takeIfSmall(maps)
	for i := range maps {
		m := &maps[i]
		if !mapped.IsCode(m) || l.imageAt(m) != nil {
			continue
		}
		name := mapped.PlaceOf(m)
		if now[name] = true; l.seen[name] {
			continue
		}
		im, err := l.open(ctx, m, maps, c.Images)
		if err != nil && (ctx.Err() != nil || errors.Is(err, process.ErrNoProcess) || errors.Is(err, process.ErrExec)) {
			return err
		}
		if err != nil {
			l.Notice("a library that was loaded is not recorded: %v", err)
		}
		if im == nil {
			l.seen[name] = true
			continue
		}
		if done := l.await(im, m); done != nil {
			im.Close()
			l.seen[name], l.awaited[name] = true, done
			continue
		}
		if !slices.Contains(c.Images, im) {
			c.Images = append(c.Images, im)
		}
	}
	for name := range l.seen {
		if !now[name] {
			delete(l.seen, name)
			delete(l.awaited, name)
		}
	}
	if len(c.Images) == 0 {
		return nil
	}
	err := l.attach(ctx, &c)
	if err == nil || ctx.Err() == nil && l.Target.Alive() && !errors.Is(err, process.ErrExec) {
		if err != nil {
			l.Notice("a library that was loaded is not recorded: %v", err)
		}
		return nil
	}
	return err
}
