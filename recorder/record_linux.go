package recorder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/budget"
	"github.com/callreel/callreel/recorder/internal/capture"
	"github.com/callreel/callreel/recorder/internal/choose"
	"github.com/callreel/callreel/recorder/internal/collect"
	"github.com/callreel/callreel/recorder/internal/control"
	"github.com/callreel/callreel/recorder/internal/imports"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/markers"
	"github.com/callreel/callreel/recorder/internal/probes"
	"github.com/callreel/callreel/recorder/internal/rest"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/scheduling"
	"github.com/callreel/callreel/recorder/internal/tables"
	"github.com/callreel/callreel/recorder/internal/target"
	"github.com/callreel/callreel/recorder/internal/trigger"
	"github.com/callreel/callreel/recorder/internal/waitcalls"
	"github.com/callreel/callreel/reel"
)

// shared is what all recordings have in common that go into one reel: that of the process with which Record was called, and with Follow
// those of the programs that are started.
type shared struct {
	memory *object.Allowance // for what is read of files
	plans  mapped.PlanCache
	store  tables.Store // the reel's tables
	marks  *markers.Store
	base   reel.Clock // what the reel's times count from
	others others     // recordings but the first
	// opening and watch are nil if nobody wants to know what the scheduler does; watch also before it is watched.
	opening *scheduling.Opening
	watch   *scheduling.Watch

	noticeMu sync.Mutex // lets one notice, or word of progress, out at a time
	sumMu    sync.Mutex // guards sum
	sum      Result     // of the recordings but the first that have ended

	paused pauses
}

// recording is that of one program.
type recording struct {
	*shared
	opt    Options
	first  *recording // of the reel; it may be this one
	out    output
	s      *target.Target
	set    ring.Setup
	clock  clock
	since  uint64 // clock ticks since boot: before it was on
	began  uint64 // when it was on, in TSC ticks
	past   uint64 // bytes for what the rings have held, of an armed recording
	nextID uint32 // of functions
	result Result
	// unmatched says which globs have matched nothing, missed the same of one of several processes.
	unmatched error
	missed    missed

	triggers  *trigger.Set
	captures  *capture.Set
	waitCalls *waitcalls.Set   // nil if no arguments are kept
	values    *capture.Decoder // of the reel
	markers   *markers.Set
	imports   *imports.Set
	marked    *markers.Decoder // of the reel
	switches  *probes.Switches
	images    *tables.Images
	functions tables.Functions
	keptOff   map[int]int // see collect.KeepOff
	reader    reader
	tally     *budget.Tally     // nil without a budget
	offMu     sync.Mutex        // guards what follows, up to keeper; that of the keeper may be taken while it is held
	wasOff    []budget.Off      // of an armed recording
	stillOff  map[uint32]uint64 // since when, by the target's IDs
	keeper    *budget.Keeper
	control   *control.Server // nil if it can't be asked
	note      *rest.Note      // of an armed recording; nil if there is none
}

// Record records until ctx ends, the time is over or the process ends, and detaches. An error after recording has begun
// comes with the Result: what was drained is in the reel.
func Record(ctx context.Context, opt Options) (*Result, error) {
	if len(opt.Command) > 0 {
		return recordCommand(ctx, opt)
	}
	r := newRecording(opt)
	defer r.Close()
	attach := func() error { return r.attachTo(ctx, opt.PID, nil) }
	if c, ok := r.others.(*couple); ok {
		defer c.Close()
		attach = func() error { return c.attach(ctx) }
	}
	if err := attach(); err != nil {
		if r.s != nil && errors.Is(err, process.ErrNoProcess) {
			err = fmt.Errorf("callreel: process %d ended before recording was on, so there is no reel: %w", opt.PID, err)
		}
		return nil, err
	}
	return r.run(ctx)
}

// newRecording returns the first recording of a reel.
func newRecording(opt Options) *recording {
	r := &recording{shared: &shared{memory: object.NewAllowance(opt.Choice.Memory)}, opt: opt, clock: startCalibration()}
	r.first = r
	r.out = r.newOutput()
	r.others = r.newOthers()
	return r
}

// Close closes the process. It may be closed already.
func (r *recording) Close() {
	if r.isFirst() {
		r.opening.Close()
	}
	r.endPaused()
	if r.s != nil {
		r.s.Close()
	}
	r.note.Close()
	r.note = nil
}

// isFirst says whether it is the recording of the process with which Record was called.
func (r *recording) isFirst() bool { return r.first == r }

// pid is the process's ID.
func (r *recording) pid() int { return r.s.PID() }

// isGo says whether the program is one in Go.
func (r *recording) isGo() bool { return r.s.Go != nil }

// attachTo does everything up to the first event, in a process that runs. who, if not nil, is which one it must be.
func (r *recording) attachTo(ctx context.Context, pid int, who *process.Handle) error {
	if err := r.planFor(ctx, pid, who); err != nil {
		return err
	}
	return r.switchOnAndCreate(ctx)
}

// planFor does what leaves the process as it is.
func (r *recording) planFor(ctx context.Context, pid int, who *process.Handle) error {
	s, err := target.Open(pid)
	if err != nil {
		return err
	}
	r.s = s
	choice := &r.opt.Choice
	s.Process.LimitMemory(choice.Memory)
	if who != nil && !who.Is(s.Process) {
		return fmt.Errorf("callreel: process %d: %w: another has its ID by now", pid, process.ErrNoProcess)
	}
	if other, name, err := s.Process.DescriptorsShared(); err == nil && other != 0 {
		r.notice("process %d (%s) shares the file descriptors of process %d, and goes on while that one stands; what is opened for recording is checked, and refused if it is exchanged",
			other, name, pid)
	}
	if r.isFirst() {
		r.prepareScheduler(ctx)
		if err := r.fetch(ctx); err != nil {
			return err
		}
	}
	if err := r.removeRemains(ctx); err != nil {
		return err
	}
	// Not before: sites that are left may stand on the last instructions that would do.
	if err := s.Process.PrepareSyscalls(); err != nil {
		return err
	}
	if err := r.choose(ctx); err != nil {
		return err
	}
	if err := r.out.check(); err != nil {
		return err
	}
	r.startClock()
	return nil
}

// switchOnAndCreate switches recording on, and makes the reel.
func (r *recording) switchOnAndCreate(ctx context.Context) error {
	if err := r.switchOn(ctx); err != nil {
		return err
	}
	// Who waits for the reel to appear may count on recording being on from then.
	if err := r.create(); err != nil {
		return r.leave(ctx, err)
	}
	return nil
}

// switchOn lets events come.
func (r *recording) switchOn(ctx context.Context) error {
	if err := r.watchScheduler(ctx); err != nil {
		return err
	}
	err := r.attach(ctx)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("callreel: process %d: told to end before recording was on, so there is no reel: %w", r.pid(), err)
	}
	return err
}

// leave detaches from a process that could be recorded, after an error.
func (r *recording) leave(ctx context.Context, err error) error {
	_, derr := r.s.Detach(context.WithoutCancel(ctx))
	return errors.Join(err, derr)
}

// startClock fixes what the reel's times count from; it must be before the first event.
func (r *recording) startClock() {
	if ticks, err := process.TicksSinceBoot(); err == nil {
		r.since = ticks
	}
	r.set.TicksPerSecond = r.clock.ticksPerSecond()
	filters := &r.opt.Filters
	r.set.Min = filters.ticks(r.set.TicksPerSecond)
	if r.isFirst() {
		now := ring.ClockPair()
		r.base = reel.Clock{Mode: r.opt.Clock, TicksPerSecond: r.set.TicksPerSecond, BaseTick: now.Tick, BaseUnixNS: now.UnixNS}
	}
}

// removeRemains removes what a dead recorder has left.
func (r *recording) removeRemains(ctx context.Context) error {
	l, err := target.FindRemains(r.s.Process)
	if err != nil || l == nil {
		return err
	}
	pid := r.s.PID()
	if err := l.IsBusy(r.s.Process); err != nil {
		return err
	}
	var file, why string
	forget := func() {}
	d, err := l.Remove(ctx, r.s.Process, func() { file, why, forget = restOf(r.s.Process, l) })
	switch {
	case file != "":
		r.notice("%s: what the rings held of a recorder (process %d) that was killed", file, l.About.Recorder)
	case why != "":
		r.notice("what the rings hold of a recorder (process %d) that was killed can't be dumped: %s", l.About.Recorder, why)
	}
	if err != nil {
		return err
	}
	if d.Left != "" {
		return fmt.Errorf("callreel: process %d: %w that can't be removed yet: %s; try again later", pid, ErrLeftBehind, d.Left)
	}
	forget()
	r.notice("removed the probes that a recorder (process %d) had left", l.About.Recorder)
	st, err := r.s.Process.Status()
	if err != nil || l.Inherited {
		return err
	}
	h, err := l.RemoveFromHeirs(ctx, pid, st.UIDs, 0)
	if h.Processes > 0 {
		r.notice("removed them from what was forked since, too: %d", h.Processes)
	}
	if err := errors.Join(err, h.Failed); err != nil || h.Left != "" {
		r.notice("a process that was forked since keeps something of that recorder's: %v", cmp.Or(h.Left, fmt.Sprint(err)))
	}
	return nil
}

// newChooser returns what says which functions are recorded: the options, and what triggers and captures ask for.
func (r *recording) newChooser() *choose.Chooser {
	opt := &r.opt
	rules := opt.Choice.rules()
	rules.Inside, rules.Exec = opt.Filters.Inside, opt.Follow
	var wanters []choose.Wanter
	if !r.triggers.Empty() {
		wanters = append(wanters, r.triggers)
	}
	if !r.captures.Empty() {
		wanters = append(wanters, r.captures)
	}
	return choose.New(rules, wanters...)
}

// newSearch returns what finds the images of modules that ch chooses, and those of hooks.
func (r *recording) newSearch(ch *choose.Chooser) *mapped.Search {
	q := &mapped.Search{Chosen: ch.Module, NoFound: r.opt.Choice.NoFound, Memory: r.memory, Hooks: true, DebugFiles: r.opt.Choice.debugFiles()}
	if r.opt.Follow {
		q.Follow, q.Plans = true, &r.plans
	}
	q.Notes = r.markers.Wants
	if !r.imports.Empty() {
		q.Slots = r.imports.Slots
	}
	q.MarksOnly = r.opt.Choice.NoFunctions && !(r.markers.Empty() && r.imports.Empty())
	return q
}

func (r *recording) notice(format string, args ...any) {
	r.noticeMu.Lock()
	defer r.noticeMu.Unlock()
	if notice := r.first.opt.Notice; notice != nil {
		notice(format, args...)
	}
}

// tell tells the user how the recording stands.
func (r *recording) tell(p Progress) {
	r.noticeMu.Lock()
	defer r.noticeMu.Unlock()
	if r.opt.Progress != nil {
		r.opt.Progress(p)
	}
}

// attach places the probes in the running process.
func (r *recording) attach(ctx context.Context) error {
	if err := r.s.MapMemory(ctx, r.set); err != nil {
		return err
	}
	c := r.s.All()
	err := errors.Join(r.arm(), r.s.Prepare(c))
	if err == nil {
		r.keptOff, err = collect.KeepOff(r.s, r.opt.Filters.Threads)
	}
	if err == nil {
		r.startPaused()
		var d time.Duration
		d, err = r.s.SwitchOn(ctx, c)
		r.began = r.s.On
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

// AtEntry does everything up to the first event, in a process that stands at its program's entry point. If it
// fails the process is as it was.
func (r *recording) AtEntry(ctx context.Context, st *process.Stopped) error {
	r.s = target.New(st.Process())
	err := r.atEntry(ctx, st)
	if err != nil && !r.isFirst() {
		r.endPaused()
		err = errors.Join(err, r.s.TakeBack(st))
		r.s.Process = nil // who has stopped it closes it
		r.s.Close()
	}
	return err
}

func (r *recording) atEntry(ctx context.Context, st *process.Stopped) error {
	if err := r.s.PrepareSyscalls(); err != nil {
		return err
	}
	if err := r.choose(ctx); err != nil {
		return err
	}
	r.startClock()
	if err := r.watchScheduler(ctx); err != nil {
		return err
	}
	if err := r.s.MapMemoryIn(st, r.set); err != nil {
		return err
	}
	c := r.s.All()
	if err := errors.Join(r.arm(), r.s.Prepare(c)); err != nil {
		return err
	}
	r.startPaused()
	if err := r.s.SwitchOnIn(st, c); err != nil {
		return err
	}
	r.began = r.s.On
	return r.create()
}

// create makes the reel, with the tables of images and functions. Who waits for the reel to appear may also ask the recorder from then.
func (r *recording) create() error {
	r.listen()
	err := r.introduce()
	if err != nil {
		r.control.Close()
		err = errors.Join(err, r.out.abandon())
	}
	return err
}

// introduce writes the header, the images, and the functions if they aren't to be written when their first events come.
func (r *recording) introduce() error {
	if err := r.out.begin(r.header); err != nil {
		return err
	}
	if r.isFirst() {
		r.store = r.others.store(r.out.tables())
		r.marks = markers.NewStore(r.out.markers())
	}
	if err := r.tellPaused(); err != nil {
		return err
	}
	if err := r.out.watch(r.watch, r); err != nil {
		return err
	}
	r.beginNote()
	r.images = tables.NewImages(r.store)
	if r.note != nil {
		r.images.AlsoTo(r.note)
	}
	for _, a := range r.s.Arenas {
		for _, im := range a.Images {
			if im.Unlisted() {
				continue
			}
			if err := r.images.Add(im); err != nil {
				return err
			}
		}
	}
	r.values = r.captures.For(r.out.arguments())
	r.marked = r.markers.For(r.marks, r.images.Number)
	if r.s.Lazy() || r.opt.Follow || r.opt.Armed != nil {
		functions := tables.NewLate(r.images, r.store)
		if r.note != nil {
			functions.AlsoTo(r.note)
		}
		r.functions = functions
		if err := functions.Add(r.s.Ranges, r.nextID); err != nil {
			return err
		}
		r.checkNote()
		if o, is := r.out.(*toFolder); is { // behind the note: who waits for the folder to appear may kill us then
			return o.folder.Make()
		}
		return nil
	}
	r.functions = tables.NewFixed(r.images, r.out.tables())
	if err := r.functions.Add(r.s.Ranges, r.nextID); err != nil {
		return err
	}
	return r.values.DescribeAll()
}

// header is what the reel says of the recording.
func (r *recording) header() (h reel.Header, err error) {
	p := r.s.Process
	exe, _, err := p.Exe()
	if err != nil {
		return h, err
	}
	command, err := p.Cmdline()
	if err != nil {
		return h, err
	}
	host, _ := os.Hostname()
	return reel.Header{
		StartUnixNS: r.base.BaseUnixNS, PID: p.Pid(), Command: command, Exe: exe, Host: host, Arch: runtime.GOARCH, Tool: r.opt.Tool,
		Clock: r.base, Goroutines: r.isGo(),
	}, nil
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
