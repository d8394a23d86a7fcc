package mapped

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/plan"
)

// Find opens every ELF file that has executable pages mapped, and plans those that are wanted. maps is where it has looked.
func (q *Search) Find(ctx context.Context, p *process.Process) (images []*Image, maps []process.Mapping, err error) {
	if maps, err = p.Maps(); err != nil {
		return nil, nil, err
	}
	exe, own := ownNames(p)
	found := q.candidates(maps, exe, own)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(found)) {
		wg.Go(func() { // while one is at what one core must do, another can be planned
			for i := int(next.Add(1)) - 1; i < len(found); i = int(next.Add(1)) - 1 {
				c := &found[i]
				if c.chosen || q.Hooks && q.HasHooks(p, c.m) || q.HasNotes(p, c.m) || q.HasSlots(p, c.m) {
					c.image, c.err = q.Open(ctx, p, c.m, maps)
				}
			}
		})
	}
	wg.Wait()
	for i := range found {
		c := &found[i]
		if c.err != nil && (c.chosen || ctx.Err() != nil) {
			err = cmp.Or(err, c.err)
		}
		if c.err != nil || c.image == nil {
			continue
		}
		c.image.Unchosen, c.image.Main = !c.chosen, c.m.Path == exe
		images = append(images, c.image)
	}
	if err != nil {
		for _, im := range images {
			im.Close()
		}
		return nil, nil, err
	}
	markUnloadable(images, exe)
	return images, maps, nil
}

// Fetch lets DebugFiles fetch what the chosen images lack. typed says of one whether types of values of its functions are wanted.
func (q *Search) Fetch(ctx context.Context, p *process.Process, typed func(im *object.Image) bool) error {
	maps, err := p.Maps()
	if err != nil {
		return err
	}
	exe, own := ownNames(p)
	var opener object.Opener // with an allowance of its own: the files are closed before they are planned
	if q.Memory != nil {
		opener.Memory = object.NewAllowance(q.Memory.Limit())
	}
	for _, c := range q.candidates(maps, exe, own) {
		if !c.chosen {
			continue
		}
		path, err := p.ExeFile(c.m)
		if err != nil {
			continue // it has gone meanwhile, or planning says what is wrong
		}
		if o, err := opener.Open(path); err == nil {
			q.DebugFiles.Fetch(ctx, o, typed(o))
			o.Close()
		}
		if ctx.Err() != nil {
			return fmt.Errorf("callreel: process %d: told to end while debug files were fetched: %w", p.Pid(), ctx.Err())
		}
	}
	return nil
}

// candidate is a file with executable pages that may be an image to be probed.
type candidate struct {
	m      process.Mapping // the first of them
	chosen bool
	image  *Image
	err    error
}

// candidates are all such files, once each, in the order of their mappings.
func (q *Search) candidates(maps []process.Mapping, exe string, own []string) (found []candidate) {
	type file struct{ dev, inode uint64 }
	seen := map[file]bool{}
	for _, m := range maps {
		if !IsCode(&m) {
			continue
		}
		key := file{m.Dev, m.Inode}
		if seen[key] {
			continue
		}
		seen[key] = true
		names := []string{filepath.Base(m.Path)}
		if m.Path == exe {
			names = append(names, own...)
		}
		found = append(found, candidate{m: m, chosen: q.Chosen(names...) && !q.MarksOnly})
	}
	return found
}

// Open opens the file behind an executable mapping and plans it; nil if it can't be probed at all.
func (q *Search) Open(ctx context.Context, p *process.Process, m process.Mapping, maps []process.Mapping) (*Image, error) {
	im, err := OpenImage(p, m, maps, q.Memory)
	if err != nil || im == nil {
		return nil, err
	}
	im.Probe.NoSearch, im.Probe.MarksOnly, im.DebugFiles = q.NoFound, q.MarksOnly, q.DebugFiles
	plan := func() error {
		q.findNotes(im)
		q.findSlots(im)
		if im.Plan, err = im.Probe.Plan(ctx); err != nil {
			return fmt.Errorf("callreel: %s: %w", im.Path, err)
		}
		NameByDebugFile(q.DebugFiles, im.Object, im.Module, im.Plan)
		RefuseGo(im.Probe.Go, im.Plan)
		im.takeMarks(im.Probe.Marked)
		return nil
	}
	if q.Plans != nil {
		err = im.planOnce(q.Plans, keyOf(m, im.File), plan)
	} else {
		err = plan()
	}
	if err != nil {
		im.Close()
		return nil, err
	}
	if err := im.compareText(p); err != nil {
		im.Close()
		if errors.Is(err, process.ErrNoMapping) { // a library has gone meanwhile
			err = nil
		}
		return nil, err
	}
	return im, nil
}

// planOnce lets the image use the plan of its file, which plan makes if there is none.
func (im *Image) planOnce(c *PlanCache, key planKey, make func() error) error {
	p, err := c.of(key, func(p *sharedPlan) error {
		err := make()
		if err == nil {
			p.object, p.probe, p.plan, p.notes = im.Object, im.Probe, slices.Clone(im.Plan), im.Notes
		}
		return err
	})
	if err != nil {
		return err
	}
	if im.Object != p.object {
		im.Object.Close()
	}
	im.Object, im.Probe, im.Plan, im.shared = p.object, p.probe, slices.Clone(p.plan), p
	im.Notes = p.notes
	im.takeMarks(slices.Clone(p.probe.Marked))
	im.plans = c
	return nil
}

// HasHooks says whether the file behind a mapping defines functions that get a hook. One that can't be read has none that
// could be.
func (q *Search) HasHooks(p *process.Process, m process.Mapping) bool {
	path, err := p.ExeFile(m)
	if err != nil {
		return false
	}
	o, err := object.Opener{Memory: q.Memory}.Open(path)
	if err != nil {
		return false
	}
	defer o.Close()
	has, err := plan.HasHooks(o, q.Follow)
	return err == nil && has
}

// HasNotes says whether the file behind a mapping has markers that are wanted.
func (q *Search) HasNotes(p *process.Process, m process.Mapping) bool {
	if q.Notes == nil {
		return false
	}
	path, err := p.ExeFile(m)
	if err != nil {
		return false
	}
	o, err := object.Opener{Memory: q.Memory}.Open(path)
	if err != nil {
		return false
	}
	defer o.Close()
	notes, _ := Notes(o) // those before the damage
	return len(q.Notes(notes)) > 0
}

// HasSlots says whether the file behind a mapping has slots that are wanted.
func (q *Search) HasSlots(p *process.Process, m process.Mapping) bool {
	if q.Slots == nil {
		return false
	}
	path, err := p.ExeFile(m)
	if err != nil {
		return false
	}
	o, err := object.Opener{Memory: q.Memory}.Open(path)
	if err != nil {
		return false
	}
	defer o.Close()
	return len(q.Slots(o)) > 0
}

// markUnloadable finds the images that may be unloaded.
func markUnloadable(images []*Image, exe string) {
	byName := map[string]*Image{}
	var reached []*Image
	for _, im := range images {
		im.Unloadable = true
		if name := im.Object.SoName(); name != "" {
			byName[name] = im
		}
		byName[im.Module] = im
		if im.Path == exe {
			im.Unloadable = false
			reached = append(reached, im)
		}
	}
	for len(reached) > 0 {
		im := reached[0]
		reached = reached[1:]
		for _, name := range im.Object.Dependencies() {
			if d := byName[name]; d != nil && d.Unloadable {
				d.Unloadable = false
				reached = append(reached, d)
			}
		}
	}
}

// ownNames returns the program's path and what else it is called by: a program started through a symbolic link, as
// Debian's redis-server is, is known to its users by the link's name.
func ownNames(p *process.Process) (exe string, names []string) {
	exe, _, err := p.Exe()
	if err != nil {
		return "", nil
	}
	if args, err := p.Cmdline(); err == nil && len(args) > 0 {
		if word := strings.Fields(args[0]); len(word) > 0 {
			names = append(names, strings.TrimLeft(filepath.Base(word[0]), "-"))
		}
	}
	return exe, append(names, p.Comm())
}

// OpenImage opens the file behind an executable mapping; nil if it isn't amd64 ELF (a JIT's cache file, say).
func OpenImage(p *process.Process, m process.Mapping, maps []process.Mapping, memory *object.Allowance) (*Image, error) {
	path, err := p.ExeFile(m)
	if errors.Is(err, process.ErrFileGone) {
		if now, e := p.Maps(); e == nil && !process.SameMapping(maps, now, m.Start) {
			return nil, nil // a library has gone meanwhile
		}
	}
	if err != nil {
		return nil, err
	}
	o, err := object.Opener{Memory: memory}.Open(path)
	if errors.Is(err, object.ErrMemory) || errors.Is(err, object.ErrChanged) {
		return nil, fmt.Errorf("callreel: %s: %w", m.Path, err)
	}
	if err != nil {
		return nil, nil
	}
	im := &Image{Path: m.Path, Module: filepath.Base(m.Path), Object: o}
	im.File = o.FileInfo()
	if st, ok := im.File.Sys().(*syscall.Stat_t); !ok || st.Ino != m.Inode {
		// The way to the file leads by the mapping's address, where another library may be by now; or it is one of the file
		// systems where stat says otherwise.
		if now, err := p.Maps(); err != nil || !process.SameMapping(maps, now, m.Start) {
			o.Close()
			return nil, err
		}
	}
	var own []process.Mapping // of the file
	for _, x := range maps {
		if x.Dev == m.Dev && x.Inode == m.Inode {
			own = append(own, x)
		}
	}
	im.Slide, err = slideOf(o, own)
	if err == nil {
		im.Probe, err = plan.NewImage(o, im.Module)
	}
	if err == nil && !im.Probe.Native() {
		err = fmt.Errorf("%s code can't be probed on %s", o.Arch, runtime.GOARCH)
	}
	if err != nil {
		o.Close()
		return nil, fmt.Errorf("callreel: %s: %w", m.Path, err)
	}
	im.Probe.Loader = IsLoader(o)
	for _, x := range own {
		if !slices.Contains(slides(o, x), im.Slide) {
			continue // another copy
		}
		if im.Lo == 0 {
			im.Lo = x.Start
		}
		im.Hi = max(im.Hi, x.End)
		if x.Perm&process.PermExec != 0 {
			im.Text = append(im.Text, x)
		}
	}
	for _, s := range o.Segments() { // .bss reaches beyond the file's pages
		if s.Type == object.SegmentLoad {
			im.Hi = max(im.Hi, s.Addr+s.MemSize+im.Slide)
		}
	}
	return im, nil
}

// slideOf is load address minus link address. Parts of a file may be mapped more than once: V8 maps a copy of its builtins
// near its heap, and some programs map their own file to read it. The image is where most of the file is.
func slideOf(o *object.Image, own []process.Mapping) (uint64, error) {
	size := map[uint64]uint64{}
	var most, slide uint64
	for _, m := range own {
		for _, s := range slides(o, m) {
			size[s] += m.Size()
			if size[s] > most {
				most, slide = size[s], s
			}
		}
	}
	if most == 0 {
		return 0, errors.New("no segment is mapped")
	}
	return slide, nil
}

// slides returns what the slide may be going by one mapping: segments may share a page of the file.
func slides(o *object.Image, m process.Mapping) []uint64 {
	page := uint64(os.Getpagesize())
	var all []uint64
	for _, s := range o.Segments() {
		if slide, ok := s.Slide(m.Start, m.Offset, page); ok && s.FileSize > 0 {
			all = append(all, slide)
		}
	}
	return all
}

// Slides returns the slides with which the file of a mapping is mapped as an image: those for which one of its mappings, of which m is one, has
// code, and its dynamic section, if it has one, is mapped. It may be there more than once (dlmopen).
func Slides(o *object.Image, m *process.Mapping, maps []process.Mapping) (list []uint64) {
	for i := range maps {
		x := &maps[i]
		if x.Dev != m.Dev || x.Inode != m.Inode || !IsCode(x) {
			continue
		}
		for _, slide := range slides(o, *x) {
			if !slices.Contains(list, slide) && isMapped(o, slide, m, maps) {
				list = append(list, slide)
			}
		}
	}
	return list
}

// isMapped says whether what there must be of an image is there with a slide.
func isMapped(o *object.Image, slide uint64, m *process.Mapping, maps []process.Mapping) bool {
	for _, s := range o.Segments() {
		if s.Type != object.SegmentDynamic {
			continue
		}
		if d := process.FindMapping(maps, s.Addr+slide); d == nil || d.Dev != m.Dev || d.Inode != m.Inode {
			return false
		}
	}
	return true
}
