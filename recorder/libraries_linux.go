package recorder

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/linkmap"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/target"
	"github.com/callreel/callreel/reel"
)

// How often libraries are looked for.
const (
	// loadInterval is how soon the loader's list is looked at again: some microseconds each time.
	loadInterval = 10 * time.Millisecond
	// armedLoadInterval is the same for an armed recorder, which is to cost next to nothing.
	armedLoadInterval = 250 * time.Millisecond
	// mapsInterval is how soon, at the soonest, the mappings are looked at though the list has not changed: there are other lists
	// (dlmopen), and code that is mapped by other means.
	mapsInterval = time.Second
	// restTimes is how many times as long as the last looking took nothing is done then, and standTimes as long as
	// the process stood still for it.
	restTimes  = 20
	standTimes = 50
	mapsTimes  = 200 // the same for reading the mappings though nothing seems to have changed
)

// Bounds of what libraries that come may take.
const (
	maxLateFunctions = 1 << 20
	maxAttempts      = 3 // at one image
	maxMarks         = 8 // looked at at a time
)

// libraries probes libraries that are loaded while recording, and forgets those that are unloaded. While it runs it alone
// changes which images and arenas the session has.
type libraries struct {
	r      *recording
	s      *target.Target
	making *compiler
	list   *linkmap.List // nil if there is none
	choose *chooser
	// seen are the mappings of files that are not recorded.
	seen map[mapped.Place]bool
	// marks are a site of each image that may go, and is there, of which some are looked at each time.
	marks  []process.Vec
	marked [][]byte // what stands there
	turn   int
	took   Libraries
	loads  loads
	last   time.Time     // that the mappings were looked at
	every  time.Duration // see mapsInterval
	most   uint32        // function ID
	cancel context.CancelFunc
	done   chan struct{}
}

// watchLibraries begins to look for libraries.
func (r *recording) watchLibraries(ctx context.Context, making *compiler) *libraries {
	l := &libraries{r: r, s: r.s, making: making, choose: r.newChooser(), seen: map[mapped.Place]bool{}, done: make(chan struct{})}
	l.list = linkmap.Find(r.s.Process)
	l.loads = newLoads(r.s)
	l.last, l.every = time.Now(), mapsInterval
	l.most = min(r.nextID+maxLateFunctions, reel.MaxID)
	if r.s.Runtime.Lazy {
		l.most = min(l.most, ring.MaxFunctions-1)
	}
	for i := range r.s.SearchedImages {
		if m := &r.s.SearchedImages[i]; mapped.IsCode(m) && l.imageAt(m) == nil {
			l.seen[mapped.PlaceOf(m)] = true
		}
	}
	ctx, l.cancel = context.WithCancel(ctx)
	go l.run(ctx)
	return l
}

// end ends the looking, and waits for that.
func (l *libraries) end() Libraries {
	l.cancel()
	l.s.Memory.WakeLoads()
	<-l.done
	return l.took
}

func (l *libraries) run(ctx context.Context) {
	defer close(l.done)
	least := loadInterval
	if l.r.opt.Armed != nil {
		least = armedLoadInterval
	}
	defer l.loads.pass()
	for rest := least; ; {
		told := l.loads.wait(ctx, rest)
		if ctx.Err() != nil || l.s.Memory.Sandboxed() {
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

// look finds out whether anything has changed, and follows it. told says that something has.
func (l *libraries) look(ctx context.Context, told bool) error {
	if !told && time.Since(l.last) < l.every && !l.changed() {
		return nil
	}
	if l.list != nil {
		l.list.Follow()
	}
	start := time.Now()
	maps, err := l.s.Process.Maps()
	if err != nil {
		return err
	}
	if !l.s.Holds(maps) {
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
func (l *libraries) changed() bool {
	if l.list != nil && l.list.Changed() {
		return true
	}
	if l.turn >= len(l.marks) {
		l.turn = 0
	}
	from, to := l.turn, min(l.turn+maxMarks, len(l.marks))
	l.turn = to
	if n, _ := l.s.Process.ReadVec(l.marks[from:to]); n < to-from {
		return true
	}
	for i := from; i < to; i++ {
		if string(l.marks[i].Buf) != string(l.marked[i]) {
			return true
		}
	}
	return false
}

// mark chooses the sites to look at.
func (l *libraries) mark() {
	l.marks, l.marked = l.marks[:0], l.marked[:0]
	for _, im := range l.s.Images {
		if im.Unloadable && !im.Gone && len(im.Sites) > 0 {
			p := &im.Sites[len(im.Sites)-1]
			l.marks = append(l.marks, process.Vec{Addr: p.Addr, Buf: make([]byte, len(p.New()))})
			l.marked = append(l.marked, p.New())
		}
	}
}

// forget notes which images are gone: their sites with them. Where one site is left the image is still taken for there,
// though somebody else may have changed others.
func (l *libraries) forget(maps []process.Mapping) error {
	for _, im := range l.s.Images {
		if !im.Unloadable || im.Gone || len(im.Sites) == 0 {
			continue
		}
		there := false
		if im.IsThere(maps) {
			var err error
			if there, err = im.HasSites(l.s.Process); errors.Is(err, process.ErrNoProcess) || errors.Is(err, process.ErrExec) {
				return err
			}
		}
		if !there {
			im.Gone = true
			l.took.Unloaded++
		}
	}
	return nil
}

// imageAt is the image that a mapping belongs to, one that is gone not counted.
func (l *libraries) imageAt(m *process.Mapping) *mapped.Image {
	for _, im := range l.s.Images {
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
func (l *libraries) add(ctx context.Context, maps []process.Mapping) error {
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
			l.r.notice("a library that was loaded is not recorded: %v", err)
		}
		if im == nil {
			l.seen[name] = true
			continue
		}
		if !slices.Contains(c.Images, im) {
			c.Images = append(c.Images, im)
		}
	}
	for name := range l.seen {
		if !now[name] {
			delete(l.seen, name)
		}
	}
	if len(c.Images) == 0 {
		return nil
	}
	err := l.attach(ctx, &c)
	if err == nil || ctx.Err() == nil && l.s.Process.Alive() && !errors.Is(err, process.ErrExec) {
		if err != nil {
			l.r.notice("a library that was loaded is not recorded: %v", err)
		}
		return nil
	}
	return err
}

// open is the image behind a mapping, if it is to be recorded: one of those that are going to be, one that was here before, or
// one that is planned now.
func (l *libraries) open(ctx context.Context, m *process.Mapping, maps []process.Mapping, coming []*mapped.Image) (*mapped.Image, error) {
	for _, im := range slices.Concat(coming, l.s.Images) {
		if im.Gone || len(im.Text) == 0 || im.Text[0].Dev != m.Dev || im.Text[0].Inode != m.Inode {
			continue
		}
		if slices.ContainsFunc(im.Text, func(t process.Mapping) bool { return mapped.PlaceOf(&t) == mapped.PlaceOf(m) }) {
			return im, nil // another part of it
		}
		return nil, nil // another copy
	}
	for _, im := range l.s.Images {
		if !im.Gone || len(im.Sites) == 0 || !im.IsBack(l.s.Process, m, maps) {
			continue
		}
		if im.Attempts >= maxAttempts {
			return nil, nil
		}
		return im, nil
	}
	chosen := l.choose.module(m.Path[lastSlash(m.Path)+1:])
	l.choose.modules, l.choose.sample = nil, nil // they are for messages only
	if !chosen && !l.choose.images.HasHooks(l.s.Process, *m) {
		return nil, nil
	}
	im, err := l.choose.images.Open(ctx, l.s.Process, *m, maps)
	if err != nil || im == nil {
		return nil, err
	}
	im.Unloadable, im.Unchosen = true, !chosen
	if im.Probe.Loader || im.Object.HasTextRelocations() {
		im.Close()
		return nil, nil
	}
	return im, nil
}

// attach probes images as it is done when recording begins. Those that were here before have their stubs already.
func (l *libraries) attach(ctx context.Context, c *target.Change) error {
	fresh := map[*target.Arena]picked{}
	id := l.r.nextID
	c.Images = slices.DeleteFunc(c.Images, func(im *mapped.Image) bool {
		if a := l.s.ArenaOf(im); a != nil {
			c.Arenas = append(c.Arenas, a)
			return false
		}
		a := &target.Arena{Images: []*mapped.Image{im}, Lo: im.Lo, Hi: im.Hi}
		n := l.choose.pick(im, id)
		l.r.watching.plan(ctx, im, l.r.notice)
		if err := l.r.captures.plan(ctx, im, true, l.r.notice); err != nil {
			l.r.notice("%v", err)
		}
		l.choose.sample = nil
		ranges := a.Take()
		if len(a.Fns) == 0 || id+uint32(n.traced) > l.most {
			l.pass(im)
			im.Close()
			if len(a.Fns) > 0 {
				l.r.notice("%s is not recorded: too many functions were loaded", im.Path)
			}
			return true
		}
		id += uint32(n.traced)
		c.Fresh, c.Arenas, c.Ranges = append(c.Fresh, a), append(c.Arenas, a), append(c.Ranges, ranges...)
		fresh[a] = n
		return false
	})
	if len(c.Images) == 0 {
		return nil
	}
	if err := l.makeRoom(ctx, c); err != nil {
		for _, a := range c.Fresh {
			l.pass(a.Images[0])
			a.Images[0].Close()
		}
		return err
	}
	if err := l.introduce(c, id); err != nil {
		l.failed(c)
		return err
	}
	s := l.s
	if err := errors.Join(l.r.armWatches(), s.Prepare(c)); err != nil {
		l.failed(c)
		return err
	}
	l.making.add(c.Ranges)
	d, err := s.SwitchOn(ctx, c)
	l.stood(d)
	if err != nil {
		l.failed(c)
		return err
	}
	for _, im := range c.Images {
		im.Gone, im.Attempts = false, 0
	}
	for _, n := range fresh {
		l.r.count(n)
	}
	l.took.Loaded += len(c.Images)
	return nil
}

// stood counts a stop.
func (l *libraries) stood(d time.Duration) {
	l.took.Stops++
	l.took.Stopped += d
	l.took.Longest = max(l.took.Longest, d)
}

// failed lets it be tried again, some times.
func (l *libraries) failed(c *target.Change) {
	for _, im := range c.Images {
		im.Gone = true
		if im.Attempts++; len(im.Sites) == 0 {
			l.pass(im)
		}
	}
}

// pass leaves an image alone for as long as it is where it is.
func (l *libraries) pass(im *mapped.Image) {
	for i := range im.Text {
		l.seen[mapped.PlaceOf(&im.Text[i])] = true
	}
}

// makeRoom maps the arenas, after it has noted where.
func (l *libraries) makeRoom(ctx context.Context, c *target.Change) error {
	if len(c.Fresh) == 0 {
		return nil
	}
	for _, a := range c.Fresh {
		a.Bound(&l.s.Runtime)
	}
	for try := 0; ; try++ {
		d, err := l.s.Process.Stop(ctx, process.StopOptions{}, func(st *process.Stopped) error { return l.s.MapArenas(st, c.Fresh) })
		l.stood(d)
		if (errors.Is(err, process.ErrNoSafeThread) || errors.Is(err, process.ErrTraced) || errors.Is(err, process.ErrLate)) && try < target.StopRetries {
			time.Sleep(time.Millisecond << min(try, 5))
			continue
		}
		return err
	}
}

// introduce lets everybody know of the images and their functions, whose IDs end before next, before the first event of theirs.
func (l *libraries) introduce(c *target.Change, next uint32) error {
	for _, a := range c.Fresh {
		im := a.Images[0]
		im.Gone = true // until its sites are written
		l.s.Images = append(l.s.Images, im)
		if !im.Unchosen {
			if err := l.r.addImage(im); err != nil {
				return err
			}
		}
	}
	if l.r.names != nil {
		l.r.names.add(c.Ranges, next)
	} else if err := l.r.addFunctions(c.Ranges, l.r.nextID); err != nil {
		return err
	}
	l.r.nextID = next
	return nil
}

func lastSlash(path string) int {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return i
		}
	}
	return -1
}
