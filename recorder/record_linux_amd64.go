package recorder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/probe"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// recording is one call of Record.
type recording struct {
	opt    Options
	s      *session
	w      *reel.Writer
	set    ring.Setup
	clock  calibration
	base   reel.Clock // see startClock
	result Result
	images map[*image]reel.ImageID
	names  *lateNames // nil if all functions are in the reel's table from the beginning
}

// Record records until ctx ends, the time is over or the process ends, and detaches. An error after recording has begun
// comes with the Result: what was drained is in the reel.
func Record(ctx context.Context, opt Options) (*Result, error) {
	if len(opt.Command) > 0 {
		return recordCommand(ctx, opt)
	}
	r := &recording{opt: opt, clock: startCalibration()}
	s, err := openSession(opt.PID)
	if err != nil {
		return nil, err
	}
	r.s = s
	defer s.close()
	if err := r.clearLeft(ctx); err != nil {
		return nil, err
	}
	// Not before: sites that are left may stand on the last instructions that would do.
	if err := s.p.PrepareSyscalls(); err != nil {
		return nil, err
	}
	if err := r.choose(ctx); err != nil {
		return nil, r.hasEnded(err)
	}
	if err := r.checkOutput(); err != nil {
		return nil, err
	}
	r.startClock()
	if err := r.attach(ctx); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("callreel: process %d: told to end before recording was on, so there is no reel: %w", opt.PID, err)
		}
		return nil, r.hasEnded(err)
	}
	// Who waits for the reel to appear may count on recording being on from then.
	if err := r.create(); err != nil {
		_, derr := r.s.detach(context.WithoutCancel(ctx))
		return nil, errors.Join(err, derr)
	}
	return r.run(ctx)
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
	_, err := os.Lstat(r.opt.Output)
	switch {
	case err == nil && !r.opt.Force:
		return fmt.Errorf("callreel: %s: %w; choose another name with -o, or replace it with --force", r.opt.Output, fs.ErrExist)
	case err == nil:
		err = unix.Access(r.opt.Output, unix.W_OK)
	case errors.Is(err, fs.ErrNotExist):
		err = unix.Access(filepath.Dir(r.opt.Output), unix.W_OK|unix.X_OK)
	}
	if err != nil {
		return fmt.Errorf("callreel: the reel can't be made: %s: %w", r.opt.Output, err)
	}
	return nil
}

// startClock fixes what the reel's times count from; it must be before the first event.
func (r *recording) startClock() {
	r.set.TicksPerSecond = r.clock.finish()
	r.base = reel.Clock{Mode: r.opt.Clock, TicksPerSecond: r.set.TicksPerSecond, BaseTick: ring.Ticks(), BaseUnixNS: time.Now().UnixNano()}
}

// clearLeft removes what a dead recorder has left.
func (r *recording) clearLeft(ctx context.Context) error {
	l, err := findLeft(r.s.p)
	if err != nil || l == nil {
		return err
	}
	pid := r.s.p.Pid()
	if l.alive && !l.inherited {
		return fmt.Errorf("callreel: process %d: %w by process %d", pid, ErrRecorded, l.recorder)
	}
	d, err := l.remove(ctx, r.s.p)
	if err != nil {
		return err
	}
	if d.Left != "" {
		return fmt.Errorf("callreel: process %d: %w that can't be removed yet: %s; try again later", pid, ErrLeftBehind, d.Left)
	}
	r.notice("removed the probes that a recorder (process %d) had left", l.recorder)
	return nil
}

func (r *recording) notice(format string, args ...any) {
	if r.opt.Notice != nil {
		r.opt.Notice(format, args...)
	}
}

// choose plans the process's images and groups what is chosen into arenas.
func (r *recording) choose(ctx context.Context) error {
	ch := newChooser(&r.opt.Choice)
	images, err := findImages(ctx, r.s.p, ch, true)
	if err != nil {
		return err
	}
	r.s.images = images
	r.result.Refused = map[string]int{}
	id := uint32(1)
	var with []*image
	for _, im := range images {
		im.first = id
		if !im.unchosen {
			im.traced = make([]probe.Selected, 0, len(im.plan))
		}
		for i := range im.plan {
			f := &im.plan[i]
			if im.unchosen || !ch.function(f.Names(), f.Size) {
				im.guarded = append(im.guarded, guardOf(im, f)...)
				continue
			}
			r.result.Seen++
			if f.Tier == probe.TierNone {
				r.result.Refused[f.Reason.String()]++
				im.guarded = append(im.guarded, guardOf(im, f)...)
				continue
			}
			im.traced = append(im.traced, probe.Selected{Function: f, Image: im.probe, ID: id, Slide: im.slide})
			id++
		}
		im.unchosen = len(im.traced) == 0
		if !im.unchosen || len(im.guarded) > 0 {
			with = append(with, im)
		}
	}
	r.result.Traced = int(id - 1)
	if err := ch.unmatched(); err != nil {
		return err
	}
	if r.result.Traced == 0 {
		for _, im := range images {
			if g := im.probe.Go; g != nil && g.Unsupported != nil {
				return fmt.Errorf("callreel: process %d: %w: %w", r.s.p.Pid(), ErrRefused, g.Unsupported)
			}
		}
		return fmt.Errorf("callreel: process %d: %w: each of the %d chosen is %w (%s); see callreel functions -p %d",
			r.s.p.Pid(), ErrNothing, r.result.Seen, ErrRefused, commonest(r.result.Refused), r.s.p.Pid())
	}
	r.s.rt = probe.Runtime{Clock: probe.Clock(r.opt.Clock), Lossless: r.opt.Lossless, Lazy: r.lazy()}
	if err := r.goOptions(with); err != nil {
		return err
	}
	r.s.arenas = groupImages(with)
	r.s.rt.Gates = make([]uint64, len(r.s.arenas))
	for _, a := range r.s.arenas {
		r.s.ranges = append(r.s.ranges, a.take()...)
		a.bound()
	}
	slices.SortFunc(r.s.ranges, func(a, b idRange) int { return cmp.Compare(a.first, b.first) })
	return r.setup()
}

// lazy says whether probes are made on the first call.
func (r *recording) lazy() bool {
	if r.result.Traced >= ring.MaxFunctions {
		return false
	}
	return r.opt.Lazy == Lazy || r.opt.Lazy == LazyAuto && r.result.Traced > LazyLimit
}

// guardOf is the guard of a function that is not traced, if it is one.
func guardOf(im *image, f *probe.Function) []probe.Selected {
	if len(f.GuardSites()) == 0 {
		return nil
	}
	return []probe.Selected{{Function: f, Image: im.probe, Slide: im.slide}}
}

// commonest names the reason that refused most functions, and how many.
func commonest(refused map[string]int) string {
	reason, most := "none was seen", 0
	for why, n := range refused {
		if n > most || n == most && why < reason {
			reason, most = why, n
		}
	}
	return fmt.Sprintf("%s: %d", reason, most)
}

// setup sizes the ring memory.
func (r *recording) setup() error {
	size := r.opt.RingSize
	if size == 0 {
		size = DefaultRingSize
		if quarter := availableMemory() / 4; size > quarter {
			size = max(quarter, ring.MinChunks*ring.ChunkSize)
		}
	}
	chunks := size / ring.ChunkSize
	if chunks < ring.MinChunks {
		return ring.ErrTooSmall
	}
	if chunks > ring.MaxChunks {
		return fmt.Errorf("callreel: a ring of %d bytes is more than %d", size, uint64(ring.MaxChunks)*ring.ChunkSize)
	}
	if available := availableMemory(); size > available/2 {
		return fmt.Errorf("callreel: %w: a ring of %d MiB is more than half of the %d MiB of memory that are available; give less with --ring",
			ErrRefused, size>>20, available>>20)
	}
	patches := 0
	for _, a := range r.s.arenas {
		for i := range a.fns {
			for _, site := range a.fns[i].Patched() {
				patches++
				if site.Island != 0 {
					patches++
				}
			}
		}
	}
	start, err := startTimeOf("self")
	if err != nil {
		return fmt.Errorf("callreel: %w", err)
	}
	r.set = ring.Setup{Chunks: int(chunks), Recovery: recoverySize(len(r.s.arenas), patches),
		RecorderPID: os.Getpid(), RecorderStart: start, TargetPID: r.s.p.Pid()}
	r.s.size = ring.Size(r.set.Chunks, r.set.Recovery)
	if r.s.golang != nil {
		r.s.goStacks = r.s.size
		r.s.size += ring.GoStacksSize
		r.set.Go = true
	}
	return nil
}

// create makes the reel, with the tables of images and functions.
func (r *recording) create() error {
	p := r.s.p
	exe, _, err := p.Exe()
	if err != nil {
		return err
	}
	command, err := p.Cmdline()
	if err != nil {
		return err
	}
	host, _ := os.Hostname()
	r.w, err = reel.Create(r.opt.Output, reel.Header{
		StartUnixNS: r.base.BaseUnixNS, PID: p.Pid(), Command: command, Exe: exe, Host: host, Arch: "amd64", Tool: r.opt.Tool,
		Clock: r.base, Goroutines: r.s.golang != nil,
	}, reel.Options{Force: r.opt.Force})
	if err != nil {
		return err
	}
	r.images = map[*image]reel.ImageID{}
	for _, a := range r.s.arenas {
		for _, im := range a.images {
			if im.unchosen {
				continue
			}
			id, err := r.w.AddImage(reel.Image{Path: im.path, ID: im.object.ID(), Arch: "amd64", Slide: im.slide, Base: im.lo, End: im.hi})
			if err != nil {
				return errors.Join(err, r.abandon())
			}
			r.images[im] = id
		}
	}
	if r.s.rt.Lazy {
		r.lateNames()
		return nil
	}
	if err := r.addFunctions(); err != nil {
		return errors.Join(err, r.abandon())
	}
	return nil
}

// addFunctions writes the function table in the order of the IDs.
func (r *recording) addFunctions() error {
	table := make([]reel.Function, 0, r.result.Traced)
	for i := range r.s.ranges {
		g := &r.s.ranges[i]
		for k := range g.count {
			table = append(table, r.describe(g, k))
		}
	}
	first, err := r.w.AddFunctions(table)
	if err == nil && first != 1 {
		err = fmt.Errorf("callreel: the reel's first function is %d", first)
	}
	return err
}

// describe is what the reel's table says of a range's k-th function.
func (r *recording) describe(g *idRange, k uint32) reel.Function {
	f := &g.arena.fns[g.at+int(k)]
	return reel.Function{Name: f.Name, Image: r.images[g.image], Addr: f.Addr, Size: f.Size, Tier: reel.TierExitSite}
}

// abandon removes the reel of a recording that never began.
func (r *recording) abandon() error {
	if r.w == nil {
		return nil
	}
	err := r.w.Close()
	if e := os.Remove(r.opt.Output); err == nil {
		err = e
	}
	return err
}

// attach places the probes in the running process.
func (r *recording) attach(ctx context.Context) error {
	if err := r.s.makeRoom(ctx, r.set); err != nil {
		return err
	}
	layers, all, err := r.s.prepare()
	if err == nil {
		err = r.s.switchOn(ctx, layers, all)
	}
	if err != nil {
		u, e := r.s.detach(context.WithoutCancel(ctx))
		if u.left != "" {
			r.notice("memory of callreel's stays mapped in the process, unused: %s", u.left)
		}
		return errors.Join(err, e)
	}
	return nil
}

// run drains until the end, detaches and sums up.
func (r *recording) run(ctx context.Context) (*Result, error) {
	if r.opt.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.opt.Duration)
		defer cancel()
	}
	r.countLeftOut()
	d := r.newDrain()
	making := r.s.makeProbes()
	err := d.loop(ctx)
	making.end()
	// What follows must be done whatever has ended the recording.
	u, derr := r.s.detach(context.WithoutCancel(ctx))
	if derr != nil {
		err = errors.Join(err, fmt.Errorf("detaching: %w (callreel detach -p %d tries again)", derr, r.s.p.Pid()))
	}
	if r.s.memory.Sandboxed() {
		r.result.Sandboxed = true
		r.notice("the process restricts its own system calls from here on (seccomp): recording has ended")
	}
	if ferr := d.finish(u.gone); err == nil {
		err = ferr
	}
	r.result.Made = r.result.Traced
	if r.s.rt.Lazy {
		r.result.Made = making.made
	}
	r.result.AttachStop, r.result.DetachStop = r.s.stopped, u.stopped
	r.result.Ended, r.result.Left = u.gone, u.left
	if derr == nil {
		ok, verr := r.verify(u)
		r.result.TextVerified = ok
		err = errors.Join(err, verr)
	}
	if cerr := r.w.Close(); err == nil {
		err = cerr
	}
	if fi, serr := os.Stat(r.opt.Output); serr == nil {
		r.result.Bytes = fi.Size()
	}
	t := d.drainer.Totals()
	r.result.Calls, r.result.Events, r.result.Dropped = t.Entries, t.Events, t.Dropped
	if err != nil {
		r.countWritten()
	}
	r.result.LostExits, r.result.Torn, r.result.Threads = t.LostExits, t.Torn, t.Threads
	return &r.result, err
}

// countWritten corrects the counts when the reel has ended before the recording, for want of room on disk, say: they are
// of what can be read.
func (r *recording) countWritten() {
	f, err := reel.Open(r.opt.Output)
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
func (r *recording) verify(u undoing) (bool, error) {
	if u.gone {
		return true, nil
	}
	for _, im := range r.s.images {
		ok, err := im.verifyText(r.s.p)
		for try := 0; im.loose && (!ok || err != nil) && r.s.p.Alive() && try < leftRetries; try++ {
			time.Sleep(time.Millisecond) // a library came or went while it was read
			ok, err = im.verifyText(r.s.p)
		}
		if errors.Is(err, process.ErrNoProcess) || err != nil && !r.s.p.Alive() {
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
	name, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	base := strings.Map(func(c rune) rune {
		if c == '/' || c < ' ' || c == 0x7F {
			return '_'
		}
		return c
	}, strings.TrimSpace(string(name)))
	if err != nil || base == "" {
		base = "callreel"
	}
	return base + "-" + strconv.Itoa(pid) + ".reel"
}
