package recorder

import (
	"bytes"
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
	"github.com/callreel/callreel/recorder/internal/probe"
)

// image is an image of the process that may be probed.
type image struct {
	path   string // as the process sees it
	module string
	object *object.Image
	probe  *probe.Image
	plan   []probe.Function
	slide  uint64
	lo, hi uint64 // addresses it occupies
	text   []process.Mapping
	loose  bool  // it may be unloaded
	kept   *plan // whose file it has, nil if that is its own
	plans  *planCache
	gone   bool // it has been
	// attempts are how often it was tried to probe it again after it had gone; file and arena are for that.
	attempts int
	file     os.FileInfo
	arena    *arena
	main     bool // it is the program, and no library
	// unchosen says that none of its functions is traced: it is there for its guards.
	unchosen bool
	// traced are its functions that are recorded, their IDs from first on, until an arena has them; guarded are those that
	// are only guarded.
	traced, guarded []probe.Selected
	first           uint32
	// islands and sites are its patches, once the code that they lead to is made.
	islands, sites []probe.Patch
	// differed are the addresses of text that wasn't the file's when we came.
	differed map[uint64]bool
}

// isIn says whether its text is where it was when it was opened.
func (im *image) isIn(maps []process.Mapping) bool {
	return !slices.ContainsFunc(im.text, func(m process.Mapping) bool { return !process.SameMapping(im.text, maps, m.Start) })
}

func (im *image) close() {
	switch {
	case im.kept == nil:
		im.object.Close()
	case im.plans != nil: // once
		im.plans.release(im.kept)
		im.plans = nil
	}
}

// findImages opens every ELF file that has executable pages mapped, and plans those whose module is chosen; with guards also
// those that define a function to be guarded. maps is where it has looked.
func findImages(ctx context.Context, p *process.Process, ch *chooser, guards bool) (images []*image, maps []process.Mapping, err error) {
	if maps, err = p.Maps(); err != nil {
		return nil, nil, err
	}
	exe, own := ownNames(p)
	found := candidates(maps, exe, own, ch)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(found)) {
		wg.Go(func() { // while one is at what one core must do, another can be planned
			for i := int(next.Add(1)) - 1; i < len(found); i = int(next.Add(1)) - 1 {
				c := &found[i]
				if c.chosen || guards && hasGuards(p, c.m, ch) {
					c.image, c.err = planned(ctx, p, c.m, maps, ch)
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
		c.image.unchosen, c.image.main = !c.chosen, c.m.Path == exe
		images = append(images, c.image)
	}
	if err != nil {
		for _, im := range images {
			im.close()
		}
		return nil, nil, err
	}
	markLoose(images, exe)
	return images, maps, nil
}

// candidate is a file with executable pages that may be an image to be probed.
type candidate struct {
	m      process.Mapping // the first of them
	chosen bool
	image  *image
	err    error
}

// candidates are all such files, once each, in the order of their mappings.
func candidates(maps []process.Mapping, exe string, own []string, ch *chooser) (found []candidate) {
	type file struct{ dev, inode uint64 }
	seen := map[file]bool{}
	for _, m := range maps {
		if m.Inode == 0 || m.Perm&process.PermExec == 0 || m.Perm&process.PermShared != 0 || m.Path == "" {
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
		found = append(found, candidate{m: m, chosen: ch.module(names...)})
	}
	return found
}

// planned opens the file behind an executable mapping and plans it; nil if it can't be probed at all.
func planned(ctx context.Context, p *process.Process, m process.Mapping, maps []process.Mapping, ch *chooser) (*image, error) {
	im, err := openImage(p, m, maps, ch.memory)
	if err != nil || im == nil {
		return nil, err
	}
	im.probe.NoSearch = ch.c.NoFound
	plan := func() error {
		if im.plan, err = im.probe.Plan(ctx); err != nil {
			return fmt.Errorf("callreel: %s: %w", im.path, err)
		}
		debugNames(im.object, im.module, im.plan)
		refuseGo(im.probe.Go, im.plan)
		return nil
	}
	if ch.plans != nil {
		err = im.planOnce(ch.plans, keyOf(m, im.file), plan)
	} else {
		err = plan()
	}
	if err != nil {
		im.close()
		return nil, err
	}
	if err := im.compareText(p); err != nil {
		im.close()
		if errors.Is(err, process.ErrNoMapping) { // a library has gone meanwhile
			err = nil
		}
		return nil, err
	}
	return im, nil
}

// planOnce lets the image use the plan of its file, which plan makes if there is none.
func (im *image) planOnce(c *planCache, key planKey, make func() error) error {
	p, err := c.of(key, func(p *plan) error {
		err := make()
		if err == nil {
			p.object, p.probe, p.plan = im.object, im.probe, slices.Clone(im.plan)
		}
		return err
	})
	if err != nil {
		return err
	}
	if im.object != p.object {
		im.object.Close()
	}
	im.object, im.probe, im.plan, im.kept = p.object, p.probe, slices.Clone(p.plan), p
	im.plans = c
	return nil
}

// hasGuards says whether the file behind a mapping defines functions to be guarded. One that can't be read has none that
// could be.
func hasGuards(p *process.Process, m process.Mapping, ch *chooser) bool {
	path, err := p.ExeFile(m)
	if err != nil {
		return false
	}
	o, err := object.Opener{Memory: ch.memory}.Open(path)
	if err != nil {
		return false
	}
	defer o.Close()
	has, err := probe.HasGuards(o, ch.follow)
	return err == nil && has
}

// loose says whether the image at addr may be unloaded while the process runs: it isn't the program, nor one of the
// libraries that the program needs, nor one that they need.
func (s *session) loose(addr uint64) bool {
	im := s.imageAt(addr)
	return im == nil || im.loose
}

// imageAt is the first image that occupies addr, nil if none does.
func (s *session) imageAt(addr uint64) *image {
	for _, im := range s.images {
		if addr >= im.lo && addr < im.hi {
			return im
		}
	}
	return nil
}

// markLoose finds the images that may be unloaded.
func markLoose(images []*image, exe string) {
	byName := map[string]*image{}
	var reached []*image
	for _, im := range images {
		im.loose = true
		if name := im.object.SoName(); name != "" {
			byName[name] = im
		}
		byName[im.module] = im
		if im.path == exe {
			im.loose = false
			reached = append(reached, im)
		}
	}
	for len(reached) > 0 {
		im := reached[0]
		reached = reached[1:]
		for _, name := range im.object.Dependencies() {
			if d := byName[name]; d != nil && d.loose {
				d.loose = false
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

// openImage opens the file behind an executable mapping; nil if it isn't amd64 ELF (a JIT's cache file, say).
func openImage(p *process.Process, m process.Mapping, maps []process.Mapping, memory *object.Allowance) (*image, error) {
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
	im := &image{path: m.Path, module: filepath.Base(m.Path), object: o}
	im.file = o.FileInfo()
	if st, ok := im.file.Sys().(*syscall.Stat_t); !ok || st.Ino != m.Inode {
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
	im.slide, err = slideOf(o, own)
	if err == nil {
		im.probe, err = probe.NewImage(o, im.module)
	}
	if err != nil {
		o.Close()
		return nil, fmt.Errorf("callreel: %s: %w", m.Path, err)
	}
	im.probe.Loader = isLoader(o)
	for _, x := range own {
		if !slices.Contains(slides(o, x), im.slide) {
			continue // another copy
		}
		if im.lo == 0 {
			im.lo = x.Start
		}
		im.hi = max(im.hi, x.End)
		if x.Perm&process.PermExec != 0 {
			im.text = append(im.text, x)
		}
	}
	for _, s := range o.Segments() { // .bss reaches beyond the file's pages
		if s.Type == object.SegmentLoad {
			im.hi = max(im.hi, s.Addr+s.MemSize+im.slide)
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
	var all []uint64
	for _, s := range o.Segments() {
		if s.Type == object.SegmentLoad && m.Offset >= s.Off&^(pageSize-1) && m.Offset < s.Off+s.FileSize {
			all = append(all, m.Start-m.Offset-(s.Addr-s.Off))
		}
	}
	return all
}

// compareText refuses functions whose code in memory isn't the file's: a debugger's breakpoint, another tool's patch.
func (im *image) compareText(p *process.Process) error {
	for i := range im.plan {
		if f := &im.plan[i]; probed(f) && !im.mapped(f) {
			f.Refuse(probe.ReasonUnmapped, 0)
		}
	}
	for _, m := range im.text {
		link := m.Start - im.slide
		file, err := im.fileBytes(link, m.Size())
		if err != nil {
			return err
		}
		same, err := holds(p, m.Start, file)
		if err != nil {
			return err
		}
		if same {
			continue
		}
		buf := make([]byte, len(file))
		if _, err := p.ReadAt(buf, m.Start); err != nil {
			return err
		}
		im.refuseDiffering(link, buf, file)
		if im.differed == nil {
			im.differed = map[uint64]bool{}
		}
		for i := range file {
			if buf[i] != file[i] {
				im.differed[m.Start+uint64(i)] = true
			}
		}
	}
	return nil
}

// holds says whether that is what the process has at addr.
func holds(p *process.Process, addr uint64, want []byte) (bool, error) {
	buf := make([]byte, min(len(want), 1<<20))
	for len(want) > 0 {
		buf = buf[:min(len(want), len(buf))]
		if _, err := p.ReadAt(buf, addr); err != nil {
			return false, err
		}
		if !bytes.Equal(buf, want[:len(buf)]) {
			return false, nil
		}
		addr, want = addr+uint64(len(buf)), want[len(buf):]
	}
	return true, nil
}

// fileBytes returns what the file has for a mapped range, which at its end may be less.
func (im *image) fileBytes(link, size uint64) ([]byte, error) {
	for _, s := range im.object.Segments() {
		if s.Type != object.SegmentLoad || s.Perm&object.PermX == 0 {
			continue
		}
		if link+size <= s.Addr || link >= s.Addr+s.FileSize {
			continue
		}
		// The mapping begins on the page of the segment's first byte.
		off := s.Off - (s.Addr - link)
		if link > s.Addr {
			off = s.Off + (link - s.Addr)
		}
		have := im.object.Size()
		if off > have {
			return nil, fmt.Errorf("callreel: %s: the text at %#x is beyond the end of the file", im.path, link)
		}
		data, err := im.object.Bytes(off, min(size, have-off))
		if err != nil {
			return nil, fmt.Errorf("callreel: %w", err)
		}
		return data, nil
	}
	return nil, fmt.Errorf("callreel: %s: no segment for the text at %#x", im.path, link)
}

// probed says whether anything is to be written for a function.
func probed(f *probe.Function) bool { return f.Tier != probe.TierNone || len(f.GuardSites()) > 0 }

func (im *image) mapped(f *probe.Function) bool {
	for _, m := range im.text {
		if a := f.Addr + im.slide; a >= m.Start && a < m.End {
			return true
		}
	}
	return false
}

// refuseDiffering refuses the functions that have a site in bytes that differ.
func (im *image) refuseDiffering(link uint64, mem, file []byte) {
	for i := range im.plan {
		f := &im.plan[i]
		for _, s := range slices.Concat(f.Sites, f.GuardSites()) {
			if differs(link, mem, file, s.Addr, s.End()) || s.Island != 0 && differs(link, mem, file, s.Island, s.Island+8) {
				f.Refuse(probe.ReasonText, s.Addr)
				break
			}
		}
	}
}

func differs(link uint64, mem, file []byte, from, to uint64) bool {
	if from < link || from-link >= uint64(len(file)) {
		return false
	}
	a, b := from-link, min(to-link, uint64(len(file)))
	return !bytes.Equal(mem[a:b], file[a:b])
}

// FunctionsOfProcess lists the functions of a running process, which is not stopped.
func FunctionsOfProcess(ctx context.Context, pid int, c Choice) (*Listing, error) {
	p, err := process.Open(pid)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	p.LimitMemory(c.Memory)
	ch := newChooser(&c)
	images, _, err := findImages(ctx, p, ch, false)
	if err != nil {
		return nil, err
	}
	out := &Listing{}
	for _, im := range images {
		out.Images = append(out.Images, im.coverage())
		for i := range im.plan {
			if f := &im.plan[i]; ch.function(f.Names(), f.Size) {
				l := listed(f, im.module, im.slide)
				// The names alias the file, which is about to be closed.
				l.Name = strings.Clone(l.Name)
				out.Functions = append(out.Functions, l)
			}
		}
		im.close()
	}
	return out, ch.unmatched()
}
