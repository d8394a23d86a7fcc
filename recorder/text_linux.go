package recorder

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/probe"

	"github.com/callreel/callreel/recorder/internal/hugepage"
)

// page is one page of text before and after.
type page struct {
	addr     uint64
	old, new []byte
	// file is the image whose file has these bytes there, nil if that isn't known: see markFiled.
	file *image
	// partly says that it is written more than once, with some of the changes first.
	partly bool
}

// memory is the live process's memory, what text changes need of it.
type memory interface {
	ReadAt(buf []byte, addr uint64) (int, error)
	WriteAt(buf []byte, addr uint64) (int, error)
}

// pagesOf makes the pages that the patches of runs lie on.
func pagesOf(runs [][]probe.Patch) []page {
	var pages []page
	for next := pageByPage(runs); ; {
		patches := next.page()
		if patches == nil {
			break
		}
		pages = append(pages, page{addr: patches[0].Addr &^ (pageSize - 1)})
	}
	// Side by side, so that many are read and written by one call, see stretches.
	size := pageSize * len(pages)
	buf := hugepage.Make[byte](2 * size)
	for i := range pages {
		pages[i].old = buf[i*pageSize : (i+1)*pageSize]
		pages[i].new = buf[size+i*pageSize : size+(i+1)*pageSize]
	}
	return pages
}

// crosses says whether the patch isn't all on one page.
func crosses(p *probe.Patch) bool { return p.Addr%pageSize+uint64(len(p.New())) > pageSize }

// prepareLayers reads the pages that the patches lie on and applies them to copies. No patch of a site crosses a page, so
// each write of a page does whole sites, or none if we are killed before it. It fails when the bytes there aren't the
// patches' old ones.
//
// The layers are the pages to be written one after the other, so that at every moment, should the writing end there, all that is
// written leads to, and relies on, what is written already: first islands, then most sites, then those of higher levels.
// all are the pages as they are in the end.
func prepareLayers(mem memory, patches ...[]probe.Patch) (layers [][]page, all []page, err error) {
	var runs [][]probe.Patch
	for _, list := range patches {
		runs = append(runs, inRuns(list)...)
	}
	all = pagesOf(runs)
	cores := max(1, min(runtime.GOMAXPROCS(0), len(all)/leastPages))
	parts, errs := make([][][]page, cores), make([]error, cores)
	var wg sync.WaitGroup
	for i := range cores {
		pages := all[i*len(all)/cores : (i+1)*len(all)/cores]
		wg.Go(func() { parts[i], errs[i] = layersOf(mem, pages, runs) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	for _, part := range parts {
		for level, pages := range part {
			if level == len(layers) {
				layers = append(layers, nil)
			}
			layers[level] = append(layers[level], pages...)
		}
	}
	return layers, all, nil
}

// leastPages is for how many pages it is worth while to use another core.
const leastPages = 512

// layersOf is prepareLayers for some of all pages that runs are on, in their order.
func layersOf(mem memory, pages []page, runs [][]probe.Patch) (layers [][]page, err error) {
	if len(pages) == 0 {
		return nil, nil
	}
	if err := readPages(mem, pages); err != nil {
		return nil, err
	}
	next := pageByPage(runs)
	next.skip(pages[0].addr)
	for i := range pages {
		pg, patches := &pages[i], next.page()
		for k := range patches {
			p := &patches[k]
			if crosses(p) {
				return nil, fmt.Errorf("callreel: %w: the site at %#x crosses a page", ErrRefused, p.Addr)
			}
			if at := pg.old[p.Addr-pg.addr:][:len(p.Old())]; !bytes.Equal(at, p.Old()) {
				return nil, fmt.Errorf("callreel: %w: at %#x there is % x instead of % x", ErrText, p.Addr, at, p.Old())
			}
		}
		layers = pg.layer(layers, patches)
	}
	return layers, nil
}

// layer applies the patches to the page, level by level, and adds what it is then to the layers. Patches that have nothing to do with
// those of other pages are written with the first.
func (pg *page) layer(layers [][]page, patches []probe.Patch) [][]page {
	copy(pg.new, pg.old)
	first := uint8(math.MaxUint8)
	for i := range patches {
		if p := &patches[i]; !p.Alone {
			first = min(first, p.Level)
		}
	}
	if first == math.MaxUint8 {
		first = 0
	}
	for level, left := first, len(patches); left > 0; level++ {
		before := left
		for i := range patches {
			if p := &patches[i]; p.Alone && level == first || !p.Alone && p.Level == level {
				copy(pg.new[p.Addr-pg.addr:], p.New())
				left--
			}
		}
		if left == before {
			continue
		}
		now := pg.new
		if left > 0 {
			now = slices.Clone(now)
		}
		layers = addLayer(layers, int(level), page{addr: pg.addr, old: pg.old, new: now})
	}
	return layers
}

// stretches calls move with one side of the pages, with all at once that follow one another, both there and in our memory.
func stretches(pages []page, side func(*page) []byte, move func(buf []byte, addr uint64) (int, error)) error {
	for len(pages) > 0 {
		all := side(&pages[0])
		all = all[:cap(all)]
		n := 1
		for n < len(pages) && pages[n].addr == pages[n-1].addr+pageSize && len(all) > n*pageSize && &all[n*pageSize] == &side(&pages[n])[0] {
			n++
		}
		if _, err := move(all[:n*pageSize], pages[0].addr); err != nil {
			return err
		}
		pages = pages[n:]
	}
	return nil
}

func readPages(mem memory, pages []page) error { return stretches(pages, oldSide, mem.ReadAt) }

// writePages writes one side of the pages. The kernel copies them page by page.
func writePages(mem memory, pages []page, side func(*page) []byte) error {
	return stretches(pages, side, mem.WriteAt)
}

// writeLayer writes the new side of many pages. None depends on another.
func writeLayer(mem memory, pages []page) error {
	return onAllCores(pages, func(some []page) error { return writePages(mem, some, newSide) })
}

// onAllCores has all cores write pages, and before others: the process stands meanwhile. Each takes some that are left, and nobody waits for
// one that hasn't taken any: on a busy machine it may come late.
func onAllCores(pages []page, write func(some []page) error) error {
	parts := (len(pages) + leastPages - 1) / leastPages
	errs := make([]error, parts)
	var next, written atomic.Int64
	done := make(chan struct{})
	take := func() {
		i := int(next.Add(1)) - 1
		if i >= parts {
			return
		}
		defer comeFirst()()
		for ; i < parts; i = int(next.Add(1)) - 1 {
			errs[i] = write(pages[i*leastPages : min((i+1)*leastPages, len(pages))])
			if written.Add(1) == int64(parts) {
				close(done)
			}
		}
	}
	for range min(runtime.GOMAXPROCS(0), parts) - 1 {
		go take()
	}
	if take(); parts > 0 {
		<-done
	}
	return errors.Join(errs...)
}

func oldSide(p *page) []byte { return p.old }
func newSide(p *page) []byte { return p.new }

// sameMemory leaves out the pages that are not, in the maps of now, what they were in the maps of before: a library was
// unloaded since, and something else may have taken its place. Mostly it is the slice itself.
func sameMemory(pages []page, before, now []process.Mapping) []page {
	var lo, hi uint64 // where that is known
	var same bool
	is := func(p *page) bool {
		if p.addr < lo || p.addr >= hi {
			same = sameMapping(before, now, p.addr)
			lo, hi = p.addr, p.addr+pageSize
			if a, b := mappingAt(before, p.addr), mappingAt(now, p.addr); a != nil && b != nil {
				lo, hi = max(a.Start, b.Start), min(a.End, b.End)
			}
		}
		return same
	}
	for i := range pages {
		if is(&pages[i]) {
			continue
		}
		kept := slices.Clone(pages[:i])
		for i++; i < len(pages); i++ {
			if is(&pages[i]) {
				kept = append(kept, pages[i])
			}
		}
		return kept
	}
	return pages
}

// changed lists the mappings of pages whose bytes are no longer those that were read, by their starts. Only the doubtful pages
// are looked at.
func changed(mem memory, pages []page, maps []process.Mapping, doubtful func(p *page) bool) (map[uint64]bool, error) {
	var again []page
	for i := range pages {
		if p := &pages[i]; doubtful(p) {
			again = append(again, page{addr: p.addr, new: p.old})
		}
	}
	buf := make([]byte, len(again)*pageSize)
	for i := range again {
		again[i].old = buf[i*pageSize:][:pageSize]
	}
	asked := slices.Clone(again)
	again, err := readThere(mem, again)
	if err != nil {
		return nil, err
	}
	found := map[uint64]bool{}
	if len(again) < len(asked) {
		for i := range asked { // all of them are to be looked at anew
			if m := mappingAt(maps, asked[i].addr); m != nil {
				found[m.Start] = true
			}
		}
	}
	for i := range again {
		if m := mappingAt(maps, again[i].addr); m != nil && !bytes.Equal(again[i].old, again[i].new) {
			found[m.Start] = true
		}
	}
	return found, nil
}

// without leaves out the pages of those mappings. Mostly it is the slice itself.
func without(pages []page, maps []process.Mapping, starts map[uint64]bool) []page {
	if len(starts) == 0 {
		return pages
	}
	return slices.DeleteFunc(slices.Clone(pages), func(p page) bool {
		m := mappingAt(maps, p.addr)
		return m == nil || starts[m.Start]
	})
}

// sameMapping says whether the same place of the same file is mapped at addr in both.
func sameMapping(before, now []process.Mapping, addr uint64) bool {
	a, b := mappingAt(before, addr), mappingAt(now, addr)
	return a != nil && b != nil && a.Dev == b.Dev && a.Inode == b.Inode && a.Path == b.Path && a.Special == b.Special &&
		a.Offset-a.Start == b.Offset-b.Start
}

// restorePages makes the pages that undo the patches, from what is in memory now. Bytes that are neither a patch's new
// ones nor its old ones were changed by somebody else; they are left and counted. Patches where no code is mapped any
// more went with their library.
func restorePages(mem memory, maps []process.Mapping, patches []probe.Patch) (pages []page, foreign int, err error) {
	parts := partsByPage(inCode(maps, patches))
	kept, counts, errs := make([][]page, len(parts)), make([]int, len(parts)), make([]error, len(parts))
	var wg sync.WaitGroup
	for i, part := range parts {
		wg.Go(func() { kept[i], counts[i], errs[i] = restorePart(mem, part) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, 0, err
	}
	for _, n := range counts {
		foreign += n
	}
	return slices.Concat(kept...), foreign, nil
}

// leastPatches is for how many patches it is worth while to use another core.
const leastPatches = 4096

// partsByPage divides patches that are in the order of their addresses among the cores; no page is in two parts.
func partsByPage(sorted []probe.Patch) (parts [][]probe.Patch) {
	n := max(1, min(runtime.GOMAXPROCS(0), len(sorted)/leastPatches))
	for from, i := 0, 1; i <= n; i++ {
		to := max(from, i*len(sorted)/n)
		for to > from && to < len(sorted) && sorted[to].Addr&^(pageSize-1) == sorted[to-1].Addr&^(pageSize-1) {
			to++
		}
		parts = append(parts, sorted[from:to])
		from = to
	}
	return parts
}

// restorePart is restorePages for some of the patches, in the order of their addresses.
func restorePart(mem memory, sorted []probe.Patch) (pages []page, foreign int, err error) {
	if pages, err = readThere(mem, pagesOf([][]probe.Patch{sorted})); err != nil {
		return nil, 0, err
	}
	k := 0
	keep := pages[:0]
	for _, pg := range pages {
		copy(pg.new, pg.old)
		for k < len(sorted) && sorted[k].Addr < pg.addr {
			k++ // its page is gone
		}
		for ; k < len(sorted) && sorted[k].Addr-pg.addr < pageSize; k++ {
			p := &sorted[k]
			if crosses(p) {
				foreign++ // no recorder wrote this
				continue
			}
			at := pg.new[p.Addr-pg.addr:][:len(p.New())]
			switch {
			case bytes.Equal(at, p.New()):
				copy(at, p.Old())
			case !bytes.Equal(at, p.Old()):
				foreign++
			}
		}
		if !bytes.Equal(pg.new, pg.old) {
			keep = append(keep, pg)
		}
	}
	return keep, foreign, nil
}

// split separates islands from sites.
func split(patches []probe.Patch) (islands, sites []probe.Patch) {
	for _, p := range patches {
		if p.Island {
			islands = append(islands, p)
		} else {
			sites = append(sites, p)
		}
	}
	return islands, sites
}

// verifyText says whether the executable pages of the images are, byte for byte, what their files say, but for what
// differed before we came.
//
// An image that isn't where it was any more has taken what was done to it along.
func (im *image) verifyText(p *process.Process) (bool, error) {
	now, err := p.Maps()
	if err != nil {
		return false, err
	}
	for _, m := range im.text {
		if !sameMapping(im.text, now, m.Start) {
			continue
		}
		file, err := im.fileBytes(m.Start-im.slide, m.Size())
		if err != nil {
			return false, err
		}
		same, err := holds(p, m.Start, file)
		if err == nil && same {
			continue
		}
		if err != nil && !errors.Is(err, process.ErrNoMapping) {
			return false, err
		}
		same, err = sameThere(p, m.Start, file, func(addr uint64) bool { return im.differed[addr] })
		if err != nil || !same {
			return false, err
		}
	}
	return true, nil
}
