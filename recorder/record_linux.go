package recorder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callreel/callreel/internal/outfile"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/control"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/target"
	"github.com/callreel/callreel/reel"
)

// recording is one call of Record.
type recording struct {
	opt    Options
	s      *target.Target
	memory *object.Allowance // for what is read of files
	w      *reel.Writer      // nil if the events go elsewhere
	to     Destination       // where they go
	set    ring.Setup
	clock  calibration
	base   reel.Clock // see startClock
	result Result
	nextID uint32 // of functions
	// filtered says that calls have been given a least duration while recording: some are accepted that the drain doesn't see at once.
	filtered atomic.Bool
	// unmatched says which globs have matched nothing.
	unmatched error
	images    map[*mapped.Image]reel.ImageID
	// noticeMu lets one notice, or word of progress, out at a time.
	noticeMu sync.Mutex
	tree     *tree       // nil if children aren't followed
	keptOff  map[int]int // threads that were off before recording began, by their IDs as the target sees them, and as seen from here
	watching *watching   // nil if recording isn't armed
	catalog  *catalog    // of an armed one
	began    uint64      // when it was on, in TSC ticks
	names    *lateNames  // nil if all functions are in the reel's table from the beginning
	captures *captures   // nil if no arguments are recorded
	switches *switches
	control  *control.Server // nil if it can't be asked
	since    uint64          // clock ticks since boot: before it was on
	who      *process.Handle // if not nil, which process it must be of
}

// Record records until ctx ends, the time is over or the process ends, and detaches. An error after recording has begun
// comes with the Result: what was drained is in the reel.
func Record(ctx context.Context, opt Options) (*Result, error) {
	if len(opt.Command) > 0 {
		return recordCommand(ctx, opt)
	}
	r := newRecording(opt)
	defer func() {
		if r.s != nil {
			r.s.Close()
		}
	}()
	if err := r.attachTo(ctx, opt.PID); err != nil {
		if r.s != nil {
			err = r.hasEnded(err)
		}
		return nil, err
	}
	return r.run(ctx)
}

// attachTo does everything up to the first event, in a process that runs.
func (r *recording) attachTo(ctx context.Context, pid int) error {
	s, err := target.Open(pid)
	if err != nil {
		return err
	}
	r.s = s
	s.Process.LimitMemory(r.opt.Choice.Memory)
	if r.who != nil && !r.who.Is(s.Process) {
		return fmt.Errorf("callreel: process %d: %w: another has its ID by now", pid, process.ErrNoProcess)
	}
	if other, name, err := s.Process.DescriptorsShared(); err == nil && other != 0 {
		r.notice("process %d (%s) shares the file descriptors of process %d, and goes on while that one stands; what is opened for recording is checked, and refused if it is exchanged",
			other, name, pid)
	}
	if err := r.clearLeft(ctx); err != nil {
		return err
	}
	// Not before: sites that are left may stand on the last instructions that would do.
	if err := s.Process.PrepareSyscalls(); err != nil {
		return err
	}
	if err := r.choose(ctx); err != nil {
		return err
	}
	if err := r.checkOutput(); err != nil {
		return err
	}
	r.startClock()
	if err := r.attach(ctx); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("callreel: process %d: told to end before recording was on, so there is no reel: %w", pid, err)
		}
		return err
	}
	// Who waits for the reel to appear may count on recording being on from then.
	if err := r.create(); err != nil {
		_, derr := s.Detach(context.WithoutCancel(ctx))
		return errors.Join(err, derr)
	}
	return nil
}

func newRecording(opt Options) *recording {
	r := &recording{opt: opt, clock: startCalibration(), memory: object.NewAllowance(opt.Choice.Memory)}
	r.switches = newSwitches(r)
	if opt.Follow {
		r.tree = newTree(r)
	}
	if opt.Armed != nil {
		r.watching, r.catalog = newWatching(opt.Armed), &catalog{}
		r.opt.To = r.catalog
	}
	return r
}

func (r *recording) newChooser() *chooser {
	ch := newChooser(&r.opt.Choice)
	ch.images.Memory, ch.images.Hooks = r.memory, true
	ch.inside, ch.inHit = r.opt.Less.Inside, make([]bool, len(r.opt.Less.Inside))
	ch.watching = r.watching
	if r.tree != nil {
		ch.follow, ch.images.Follow, ch.images.Plans = true, true, &r.tree.plans
	}
	ch.captures = r.captures
	return ch
}

// hasEnded says so, when an error is but that the process ended before recording was on.
func (r *recording) hasEnded(err error) error {
	if errors.Is(err, process.ErrNoProcess) {
		return fmt.Errorf("callreel: process %d ended before recording was on, so there is no reel: %w", r.opt.PID, err)
	}
	return err
}

// checkOutput finds out, before the process is touched, whether the reel could be made.
func (r *recording) checkOutput() error {
	if r.opt.Armed != nil {
		return r.checkFolder()
	}
	if r.isSub() || r.opt.To != nil {
		return nil
	}
	err := outfile.Check(r.opt.Output, outfile.Options{Force: r.opt.Force})
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("callreel: %s: %w; choose another name with -o, or replace it with --force", r.opt.Output, fs.ErrExist)
	case err != nil:
		return fmt.Errorf("callreel: the reel can't be made: %w", err)
	}
	return nil
}

// startClock fixes what the reel's times count from; it must be before the first event.
func (r *recording) startClock() {
	if ticks, err := process.TicksSinceBoot(); err == nil {
		r.since = ticks
	}
	defer func() { r.set.Min = r.opt.Less.ticks(r.set.TicksPerSecond) }()
	if r.isSub() { // the reel has begun
		r.set.TicksPerSecond, r.base = r.tree.root.set.TicksPerSecond, r.tree.root.base
		return
	}
	r.set.TicksPerSecond = r.clock.finish()
	r.base = reel.Clock{Mode: r.opt.Clock, TicksPerSecond: r.set.TicksPerSecond, BaseTick: ring.Ticks(), BaseUnixNS: time.Now().UnixNano()}
}

// clearLeft removes what a dead recorder has left.
func (r *recording) clearLeft(ctx context.Context) error {
	l, err := target.FindRemains(r.s.Process)
	if err != nil || l == nil {
		return err
	}
	pid := r.s.Process.Pid()
	if err := l.IsBusy(r.s.Process); err != nil {
		return err
	}
	d, err := l.Remove(ctx, r.s.Process)
	if err != nil {
		return err
	}
	if d.Left != "" {
		return fmt.Errorf("callreel: process %d: %w that can't be removed yet: %s; try again later", pid, ErrLeftBehind, d.Left)
	}
	r.notice("removed the probes that a recorder (process %d) had left", l.About.Recorder)
	return nil
}

func (r *recording) notice(format string, args ...any) {
	r.noticeMu.Lock()
	defer r.noticeMu.Unlock()
	if r.opt.Notice != nil {
		r.opt.Notice(format, args...)
	}
}

// create makes the reel, with the tables of images and functions. Who waits for the reel to appear may also ask the recorder from then.
func (r *recording) create() error {
	r.listen()
	err := r.createReel()
	if err != nil {
		r.control.Close()
	}
	return err
}

func (r *recording) createReel() error {
	if r.isSub() {
		return r.introduce()
	}
	p := r.s.Process
	exe, _, err := p.Exe()
	if err != nil {
		return err
	}
	command, err := p.Cmdline()
	if err != nil {
		return err
	}
	host, _ := os.Hostname()
	err = r.begin(reel.Header{
		StartUnixNS: r.base.BaseUnixNS, PID: p.Pid(), Command: command, Exe: exe, Host: host, Arch: runtime.GOARCH, Tool: r.opt.Tool,
		Clock: r.base, Goroutines: r.s.Go != nil,
	})
	if err != nil {
		return err
	}
	if r.tree != nil {
		r.tree.tables.to = r.to
	}
	return r.introduce()
}

// begin makes the reel, or whatever takes its place.
func (r *recording) begin(h reel.Header) (err error) {
	if r.to = r.opt.To; r.to != nil {
		if r.opt.Armed != nil {
			if err := r.makeFolder(); err != nil {
				return err
			}
		}
		return r.to.Begin(h)
	}
	if r.w, err = reel.Create(r.opt.Output, h, reel.Options{Force: r.opt.Force, Mode: r.opt.Mode}); err == nil {
		r.to = toReel{r.w}
		if r.s.Runtime.Every > 0 {
			if err := r.w.Made(r.s.Runtime.Every, nil); err != nil {
				return errors.Join(err, r.abandon())
			}
		}
	}
	return err
}

// written is how large the reel is.
func (r *recording) written() int64 {
	if r.w == nil {
		return 0
	}
	return r.w.Stats().Bytes
}

// introduce writes the images, and the functions if they aren't to be written when their first events come.
func (r *recording) introduce() error {
	r.images = map[*mapped.Image]reel.ImageID{}
	for _, a := range r.s.Arenas {
		for _, im := range a.Images {
			if im.Unchosen {
				continue
			}
			if err := r.addImage(im); err != nil {
				return errors.Join(err, r.abandon())
			}
		}
	}
	if r.s.Runtime.Lazy || r.tree != nil || r.opt.Armed != nil {
		r.lateNames()
		return nil
	}
	err := r.addFunctions(r.s.Ranges, 1)
	if err == nil {
		err = r.captures.describeAll(r.to)
	}
	if err != nil {
		return errors.Join(err, r.abandon())
	}
	return nil
}

// addImage adds an image to the reel.
func (r *recording) addImage(im *mapped.Image) error {
	about := reel.Image{Path: im.Path, ID: im.Object.ID(), Arch: runtime.GOARCH, Slide: im.Slide, Base: im.Lo, End: im.Hi}
	var id reel.ImageID
	var err error
	if r.tree != nil {
		id, err = r.tree.tables.image(about, im.File)
	} else {
		id, err = r.to.AddImage(about)
	}
	if err != nil {
		return err
	}
	r.s.Mu.Lock()
	r.images[im] = id
	r.s.Mu.Unlock()
	return nil
}

// addFunctions writes the functions of ranges, with IDs from first on, into the reel's table, in the order of the IDs.
func (r *recording) addFunctions(ranges []target.IDRange, first uint32) error {
	var table []reel.Function
	for i := range ranges {
		g := &ranges[i]
		for k := range g.Count {
			table = append(table, r.describe(g, k))
		}
	}
	got, err := r.to.AddFunctions(table)
	if err == nil && got != first {
		err = fmt.Errorf("callreel: the reel's next function is %d, not %d", got, first)
	}
	return err
}

// describe is what the reel's table says of a range's k-th function.
func (r *recording) describe(g *target.IDRange, k uint32) reel.Function {
	f := &g.Arena.Fns[g.At+int(k)]
	r.s.Mu.Lock()
	defer r.s.Mu.Unlock()
	return reel.Function{Name: f.Name, Image: r.images[g.Image], Addr: f.Addr, Size: f.Size, Tier: reel.TierExitSite}
}

// abandon removes the reel of a recording that never began. That of a program that was started has none of its own.
func (r *recording) abandon() error {
	to, w := r.to, r.w
	if to == nil || r.isSub() {
		return nil
	}
	r.to, r.w = nil, nil // once is enough
	if w != nil {
		return w.Abandon()
	}
	return to.Close()
}

// attach places the probes in the running process.
func (r *recording) attach(ctx context.Context) error {
	if err := r.s.MapMemory(ctx, r.set); err != nil {
		return err
	}
	c := r.s.All()
	err := errors.Join(r.armWatches(), r.s.Prepare(c))
	if err == nil {
		err = r.keepOff()
	}
	if err == nil {
		var d time.Duration
		d, err = r.s.SwitchOn(ctx, c)
		r.began = ring.Ticks()
		r.s.Stopped += d
	}
	if err != nil {
		u, e := r.s.Detach(context.WithoutCancel(ctx))
		if u.Kept != "" {
			r.notice("memory of callreel's stays mapped in the process, unused: %s", u.Kept)
		}
		return errors.Join(err, e)
	}
	return nil
}

// run drains until the end, detaches and sums up.
func (r *recording) run(ctx context.Context) (*Result, error) {
	if r.opt.Started != nil {
		r.opt.Started()
	}
	if r.opt.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.opt.Duration)
		defer cancel()
	}
	if r.tree != nil {
		r.tree.start(ctx)
	}
	err := r.session(ctx)
	if r.tree != nil {
		err = errors.Join(err, r.tree.wait())
		if r.result.Seen == 0 && err == nil {
			err = r.unmatched
		}
	}
	if err == nil && r.w != nil {
		r.index(ctx)
	}
	if cerr := r.to.Close(); err == nil {
		err = cerr
	}
	if r.w == nil {
		return &r.result, err
	}
	r.result.Bytes = r.w.Stats().Bytes
	if err != nil {
		r.countWritten()
	}
	return &r.result, err
}

// session drains until the end of the process, or of ctx, and detaches.
func (r *recording) session(ctx context.Context) error {
	r.countLeftOut()
	d := r.newDrain()
	var held *armed
	if r.opt.Armed != nil {
		held = r.newArmed(d)
	}
	libraries := r.watchLibraries(ctx, d.making)
	var watched *execs
	if d.family != nil {
		watched = d.family.watchExecs(ctx)
	}
	r.switches.begin(d.making)
	r.serveControl(ctx, held)
	var err error
	if held != nil {
		err = held.loop(ctx)
	} else {
		err = d.loop(ctx)
	}
	r.tellEnding()
	r.switches.end()
	r.control.Close()
	if d.family == nil {
		r.tellOfExec()
	}
	r.result.Libraries = libraries.end()
	if watched != nil {
		r.s.Memory.SetFollow(false)
		watched.end()
	}
	// What follows must be done whatever has ended the recording.
	r.s.Memory.SetFollow(false)
	u, derr := r.s.Detach(context.WithoutCancel(ctx))
	if derr != nil {
		err = errors.Join(err, fmt.Errorf("detaching: %w (callreel detach -p %d tries again)", derr, r.s.Process.Pid()))
	}
	if r.s.Memory.Sandboxed() {
		r.result.Sandboxed = true
		r.notice("the process restricts its own system calls from here on (seccomp): recording has ended")
	}
	r.result.TextVerified = true
	if d.family != nil {
		if e := d.family.detach(context.WithoutCancel(ctx)); e != nil {
			err = errors.Join(err, fmt.Errorf("detaching from children: %w", e))
		}
	}
	var ferr error
	if held != nil {
		ferr = held.end()
	} else {
		ferr = errors.Join(d.finish(u.Gone), r.tellMade())
	}
	if err == nil {
		err = ferr
	}
	r.result.Made = r.result.Traced
	if r.s.Runtime.Lazy {
		d.making.all() // of threads that were killed while they asked, too
		r.result.Made = d.making.made
	}
	r.result.AttachStop, r.result.DetachStop = r.s.Stopped, u.Stopped
	r.result.Ended, r.result.Left = u.Gone, u.Kept
	if derr != nil {
		r.result.TextVerified = false
	} else {
		ok, verr := r.verify(u)
		r.result.TextVerified = ok && r.result.TextVerified
		err = errors.Join(err, verr)
	}
	if held != nil {
		return err
	}
	t := d.drainer.Totals()
	left := &r.switches.left
	r.result.Calls, r.result.Events, r.result.Dropped = t.Entries-left.entries, t.Events-left.events, t.Dropped
	r.result.LostExits, r.result.Torn, r.result.Threads = t.LostExits, t.Torn, t.Threads
	r.result.Ring = int64(r.set.Chunks) * ring.ChunkSize
	if t.Dropped > 0 {
		enough := ring.Enough(uint64(r.result.Ring), t)
		r.result.RingEnough, r.result.Scarce = int64(enough), enough > availableMemory()/2
	}
	if t.Threads == 0 && len(r.opt.Less.Threads) > 0 && !r.isSub() {
		r.notice("no thread that --threads %s matches has called a chosen function", strings.Join(r.opt.Less.Threads, ", "))
	}
	return err
}

// tellEnding tells that the process is being left.
func (r *recording) tellEnding() {
	r.noticeMu.Lock()
	defer r.noticeMu.Unlock()
	if r.opt.Progress != nil {
		r.opt.Progress(Progress{Ending: true})
	}
}

// tellOfExec tells that the process runs another program now, which ends a recording that doesn't follow.
func (r *recording) tellOfExec() {
	var word [8]byte
	if _, err := r.s.Process.ReadAt(word[:], r.s.Runtime.Ring); !errors.Is(err, process.ErrExec) || !r.s.Process.Alive() {
		return
	}
	exe, err := process.Program(r.s.Process.Pid())
	if err != nil {
		exe = "another program"
	}
	r.notice("process %d runs %s now, which is not recorded: --follow records it, too", r.s.Process.Pid(), exe)
}

// countWritten corrects the counts when the reel has ended before the recording, for want of room on disk, say: they are
// of what can be read.
func (r *recording) countWritten() {
	f, err := r.w.Open()
	if err != nil {
		return
	}
	defer f.Close()
	s := reel.Summarize(f, reel.SummaryOptions{})
	if s.Events < r.result.Events {
		r.notice("%d calls that were made before the end are not in the reel", r.result.Calls-min(s.Calls, r.result.Calls))
		r.result.Calls, r.result.Events = s.Calls, s.Events
	}
}

// verify compares the text with the files.
func (r *recording) verify(u target.Undone) (bool, error) {
	if u.Gone {
		return true, nil
	}
	for _, im := range r.s.Images {
		ok, err := im.VerifyText(r.s.Process)
		for try := 0; im.Unloadable && (!ok || err != nil) && r.s.Process.Alive() && try < target.UndoRetries; try++ {
			time.Sleep(time.Millisecond) // a library came or went while it was read
			ok, err = im.VerifyText(r.s.Process)
		}
		if errors.Is(err, process.ErrNoProcess) || err != nil && !r.s.Process.Alive() {
			return true, nil
		}
		if err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// DefaultOutput is the reel's name where none is given: that of the program and the process.
func DefaultOutput(pid int, command []string) string {
	if len(command) > 0 {
		return filepath.Base(command[0]) + ".reel"
	}
	name, err := process.ThreadName(pid, pid)
	base := strings.Map(func(c rune) rune {
		if c == '/' || c < ' ' || c == 0x7F {
			return '_'
		}
		return c
	}, strings.TrimSpace(name))
	if err != nil || base == "" {
		base = "callreel"
	}
	return base + "-" + strconv.Itoa(pid) + ".reel"
}
