package recorder

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/callreel/callreel/recorder/internal/capture"
	"github.com/callreel/callreel/recorder/internal/choose"
	"github.com/callreel/callreel/recorder/internal/follow"
	"github.com/callreel/callreel/recorder/internal/imports"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/markers"
	"github.com/callreel/callreel/recorder/internal/probes"
	"github.com/callreel/callreel/recorder/internal/recovery"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/recorder/internal/target"
	"github.com/callreel/callreel/recorder/internal/trigger"
)

// choose plans the process's images and groups what is chosen into arenas.
func (r *recording) choose(ctx context.Context) error {
	var err error
	if r.captures, err = capture.New(capture.Options{Args: r.opt.Args, Returns: r.opt.Returns, Conditions: r.opt.Conditions}); err != nil {
		return err
	}
	r.triggers = trigger.NewSet(r.opt.triggers())
	// What triggers are about comes first: what is asked for besides, with arguments, counts for more.
	asked := slices.Concat(r.triggers.Markers(), r.opt.Markers)
	if r.markers, err = markers.New(markers.Options{Markers: asked, Pairs: r.opt.Pairs}); err != nil {
		return err
	}
	r.markers.Triggers(r.triggers.TakeMark)
	r.markers.Obey(needsTimes(r.opt.Clock))
	if err := r.opt.checkTogether(); err != nil {
		return err
	}
	if r.imports, err = imports.New(r.opt.Imports); err != nil {
		return err
	}
	r.waitCalls = r.newWaitCalls()
	ch := r.newChooser()
	images, maps, err := r.newSearch(ch).Find(ctx, r.s.Process)
	if err != nil {
		return err
	}
	r.s.SearchedImages = maps
	r.s.Images, r.s.Loader = images, mapped.LoaderOf(images)
	r.result.Refused = map[string]int{}
	r.nextID = 1
	var goSays [2]uint32
	if slices.ContainsFunc(images, func(im *mapped.Image) bool { return im.Main && im.Probe.Go != nil }) {
		goSays = r.markers.ObeyGo() // what else is in it isn't recorded
	}
	var with []*mapped.Image
	var listed []*mapped.Image // whose module is chosen
	for _, im := range images {
		if !im.Unchosen && !r.opt.Choice.NoFunctions {
			listed = append(listed, im)
			r.covered(coverageOf(im.Probe, im.Module, im.Main))
		}
		n := ch.Pick(im, r.nextID)
		r.triggers.Plan(ctx, im, r.notice)
		if err := r.captures.Plan(ctx, im, r.notice); err != nil {
			return err
		}
		r.waitCalls.Plan(im, r.captures.Table())
		r.nextID += uint32(n.Traced)
		r.count(n)
		r.countMarkers(r.markers.Pick(ctx, im, true, r.notice))
	}
	n, next, err := r.pickImports(images, r.nextID)
	if err != nil {
		return err
	}
	r.nextID = next
	r.countImports(n)
	for _, im := range images {
		if len(im.Traced)+len(im.Imports)+len(im.Hooked)+len(im.Marked) > 0 {
			with = append(with, im)
		}
	}
	if !r.isCoupled() { // else it is seen to when all are planned
		if err := r.triggers.Check(ch.Names(), r.waiter(ch.Names())); err != nil {
			return err
		}
	}
	marked := r.result.Markers.Recorded + r.result.Imports.Recorded
	// Where children are followed, what is chosen may be in the program of one that is yet to come.
	if r.unmatched = ch.Check(); r.unmatched == nil {
		r.unmatched = r.captures.Check(ch.Names(), nil)
	}
	if r.unmatched == nil {
		r.unmatched = r.markers.Check(nil)
	}
	if r.unmatched == nil {
		r.unmatched = r.imports.Check(nil)
	}
	follows := r.opt.Follow && len(with) > 0
	if !r.isFirst() && !follows && !r.isCoupled() {
		return follow.ErrNotWanted
	}
	waits := false
	if r.isCoupled() {
		r.missed = missed{globs: ch.Missed(), names: ch.Names(), other: r.checkValues(ch)}
		if r.unmatched != nil && r.result.Traced+marked == 0 {
			return fmt.Errorf("callreel: process %d has nothing to record: %w", r.s.PID(), r.unmatched)
		}
	} else if r.unmatched != nil && !follows {
		if err := r.await(ch, r.result.Traced+marked > 0); err != nil {
			return err
		}
		waits = len(with) > 0
	}
	if r.result.Traced+marked == 0 && !follows && !waits {
		for _, im := range images {
			if g := im.Probe.Go; g != nil && g.Unsupported != nil {
				return fmt.Errorf("callreel: process %d: %w: %w", r.s.PID(), ErrRefused, g.Unsupported)
			}
		}
		if r.opt.Choice.NoFunctions && r.result.Imports.Seen > 0 && r.markers.Empty() {
			return r.noImports()
		}
		if r.opt.Choice.NoFunctions {
			return fmt.Errorf("callreel: process %d: %w: each of the %d markers that were asked for is %w (%s); see callreel markers -p %d",
				r.s.PID(), ErrNothing, r.result.Markers.Seen, ErrRefused, commonest(r.result.Markers.Refused), r.s.PID())
		}
		if r.result.Seen == 0 {
			return fmt.Errorf("callreel: process %d: %w: %s", r.s.PID(), ErrNothing, whyNone(listed, r.opt.Choice.NoFound))
		}
		return fmt.Errorf("callreel: process %d: %w: each of the %d chosen is %w (%s); see callreel functions -p %d",
			r.s.PID(), ErrNothing, r.result.Seen, ErrRefused, commonest(r.result.Refused), r.s.PID())
	}
	if filters := &r.opt.Filters; filters.Every > 1 && r.result.Traced >= ring.MaxFunctions {
		return fmt.Errorf("callreel: process %d: %w: too many functions to count their calls", r.s.PID(), ErrRefused)
	}
	r.s.Runtime = r.stubConfig()
	r.s.Runtime.GoSays = goSays
	if err := r.seeProcessor(); err != nil {
		return err
	}
	with = withoutHooks(with)
	if err := r.goOptions(with); err != nil {
		return err
	}
	if r.isCoupled() && r.isGo() {
		return fmt.Errorf("callreel: process %d: %w: it is a Go program, whose goroutines would be taken for those of others: --with takes none", r.s.PID(), ErrRefused)
	}
	r.switches = r.newSwitches()
	r.takeOver(with)
	return r.setup()
}

// stubConfig is what stubs are told of what was asked for.
func (r *recording) stubConfig() stub.Config {
	c := stub.Config{Clock: stub.Clock(r.opt.Clock), Lossless: r.opt.Lossless, Lazy: r.lazy(), Follow: r.opt.Follow,
		Overwrite: r.opt.Armed != nil, Captures: r.markers.AddTo(r.captures.Table()), Keeps: r.waitCalls.Table(),
		MarkTriggers: r.markers.Parts(), Says: r.markers.Says()}
	f := &r.opt.Filters
	c.Min, c.Threads, c.Depth, c.Inside = f.Min > 0, len(f.Threads) > 0, f.Depth > 0, len(f.Inside) > 0
	if f.Every > 1 {
		c.Every = f.Every
	}
	return c
}

// seeProcessor tells stubs what the processor can do.
func (r *recording) seeProcessor() error {
	auxv, err := r.s.Process.Auxv()
	if err != nil {
		return err
	}
	if auxv.PageSize > target.PageSize {
		return fmt.Errorf("callreel: process %d: pages of %d bytes: %w", r.s.PID(), auxv.PageSize, ErrUnsupported)
	}
	r.s.Runtime.HWCap, r.s.Runtime.HWCap2 = auxv.HWCap, auxv.HWCap2
	return nil
}

// takeOver gives the functions of images to arenas.
func (r *recording) takeOver(images []*mapped.Image) {
	s := r.s
	s.Arenas, s.ArenaMade = target.GroupImages(images), r.switches.Come
	for _, a := range s.Arenas {
		s.Ranges = append(s.Ranges, a.Take()...)
		a.Bound(&s.Runtime)
	}
	slices.SortFunc(s.Ranges, func(a, b target.IDRange) int { return cmp.Compare(a.First, b.First) })
}

// withoutHooks leaves out, beside a Go program, images of which nothing is chosen: that of a position-independent one has a loader, which
// it never calls.
func withoutHooks(with []*mapped.Image) []*mapped.Image {
	if !slices.ContainsFunc(with, func(im *mapped.Image) bool { return im.Probe.Go != nil && len(im.Traced)+len(im.Marked) > 0 }) {
		return with
	}
	return slices.DeleteFunc(with, func(im *mapped.Image) bool {
		if len(im.Traced)+len(im.Marked) > 0 {
			return false
		}
		im.Hooked = nil
		return true
	})
}

// count adds what was chosen of an image.
func (r *recording) count(n choose.Picked) {
	r.result.Seen += n.Seen
	r.result.Traced += n.Traced
	for why, k := range n.Refused {
		r.result.Refused[why] += k
	}
}

// countMarkers adds what was picked of an image's markers.
func (r *recording) countMarkers(n markers.Picked) {
	m := &r.result.Markers
	m.Seen += n.Seen
	m.Recorded += n.Recorded
	for why, k := range n.Refused {
		if m.Refused == nil {
			m.Refused = map[string]int{}
		}
		m.Refused[why] += k
	}
}

// lazy says whether probes are made on the first call.
func (r *recording) lazy() bool {
	if r.result.Traced >= ring.MaxFunctions {
		return false
	}
	return r.opt.Lazy == Lazy || r.opt.Lazy == LazyAuto && r.result.Traced > LazyLimit
}

// covered notes what is known of an image's code, and says if that is little.
func (r *recording) covered(c Coverage) {
	r.result.Images = append(r.result.Images, c)
	if !c.Small() {
		return
	}
	help := "its debug symbols, installed or left in, make them known"
	if r.opt.Choice.NoFound {
		help = "without --found=no more are found"
	}
	r.notice("only %.1f %% of the code of %s belongs to functions that are known; %s", 100*c.Share(), c.Module, help)
}

// whyNone says why there is no function to choose from, and what to do.
func whyNone(images []*mapped.Image, noFound bool) string {
	known := 0
	var modules []string
	for _, im := range images {
		known += len(im.Plan)
		modules = append(modules, im.Module)
	}
	switch {
	case len(images) == 0:
		return "no ELF file's code is mapped in it, and code that is made at run time has no functions that are known"
	case known > 0:
		return fmt.Sprintf("-x and --min-size leave out all of the %d functions that are known", known)
	}
	why := "and none was found in the code"
	if noFound {
		why = "and --found=no leaves out what the code shows"
	}
	return fmt.Sprintf("no function is known of %s: there are neither symbols nor call frame information (.eh_frame), %s; "+
		"build it without stripping (ld -s, strip), or with -fasynchronous-unwind-tables", strings.Join(modules, ", "), why)
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

// budgetRing is how much memory rings have with a budget, unless there are many threads: what costs too much is known when it is read, so it
// must not wait for long behind what has come before. Within its budget a program has no more to say than fits in.
const budgetRing = 32 << 20

// usualRing is how much memory rings have unless that is asked for.
func (r *recording) usualRing() uint64 {
	if r.opt.Budget.Share == 0 || r.opt.Armed != nil {
		return DefaultRingSize
	}
	const each = 4 * ring.ChunkSize
	threads, err := r.s.Process.Threads()
	if err != nil {
		return DefaultRingSize
	}
	return min(max(budgetRing, uint64(len(threads))*each), DefaultRingSize)
}

// setup sizes the ring memory.
func (r *recording) setup() error {
	size, available := r.opt.RingSize, availableMemory()
	if r.isCoupled() {
		available /= uint64(1 + len(r.opt.Armed.With)) // each has as much
	}
	if size == 0 {
		size = r.usualRing()
		if quarter := available / 4; size > quarter {
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
	if size > available/2 {
		return fmt.Errorf("callreel: %w: a ring of %d MiB is more than half of the %d MiB of memory that are available; give less with --ring",
			ErrRefused, size>>20, available>>20)
	}
	if err := r.setMemory(); err != nil {
		return err
	}
	patches, semaphores, slots := 0, 0, 0
	for _, a := range r.s.Arenas {
		for _, im := range a.Images {
			semaphores += len(im.Semaphores)
		}
		for i := range a.Fns {
			if a.Fns[i].Import != nil {
				slots++
			}
			for _, site := range a.Fns[i].Patched() {
				patches++
				if site.Island != 0 {
					patches++
				}
			}
		}
	}
	s, filters := r.s, &r.opt.Filters
	s.Records = recovery.RecordSize(len(s.Arenas), 0, 0, 0) + recovery.RecordSize(0, patches, semaphores, slots) + uint64(len(s.Arenas))*recovery.RecordHeader + recovery.LateSize
	r.set = ring.Setup{Chunks: int(chunks), Divide: r.opt.Armed == nil, Overwrite: r.opt.Armed != nil, Later: true, Depth: filters.Depth}
	s.Unsigned = func(err error) {
		r.notice("what is left should this recorder be killed isn't signed, so callreel detach removes less of it: %v", err)
	}
	s.Unrecorded = func(err error) { r.notice("%v", err) }
	s.Uncounted = func(err error) { r.notice("%v", err) }
	if !r.isFirst() {
		s.Owner = r.first.s.Owner
	}
	s.Size = ring.Size(r.set.Chunks)
	if r.isGo() {
		s.GoStacks = s.Size
		s.Size += ring.GoStacksSize
	}
	if r.opt.needsAreas() {
		s.Areas = s.Size
		s.Size += ring.AreasSize
	}
	if !r.captures.Empty() || !r.markers.Empty() {
		s.ArgBuffers = s.Size
		s.Size += ring.ArgsSize
	}
	if r.waitCalls != nil {
		s.Kept = s.Size
		s.Size += ring.KeptSize
	}
	if s.Runtime.Every > 0 {
		s.Counts = s.Size
		s.Size += ring.CountsSize
	}
	if r.opt.Armed != nil {
		s.Predicates = s.Size
		s.Size += ring.PredicatesSize
	}
	return nil
}

// newSwitches returns what switches the recording's functions off and on.
func (r *recording) newSwitches() *probes.Switches {
	c := probes.Config{Target: r.s, EntriesOnly: r.opt.Armed != nil && r.opt.Budget.Share == 0, Late: r.opt.Armed != nil, Elsewhere: r.opt.Follow, MayCome: r.mayCome, Notice: r.notice}
	if !r.isFirst() && !r.isCoupled() {
		c.Lead = r.first.switches
	}
	c.Keeps = r.keepsByName()
	return probes.New(c)
}
