package text

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callreel/callreel/internal/foremost"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/hugepage"
	"github.com/callreel/callreel/recorder/internal/refusal"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// A Page is one page of text before and after.
type Page struct {
	Addr     uint64
	Old, New []byte
	// File is the file that has these bytes there, nil if that isn't known.
	File interface{ Unchanged() bool }
	// Partly says that it is written more than once, with some of the changes first.
	Partly bool
}

// Memory is the live process's memory, what text changes need of it.
type Memory interface {
	ReadAt(buf []byte, addr uint64) (int, error)
	WriteAt(buf []byte, addr uint64) (int, error)
}

// pagesOf makes the pages that the patches of runs lie on.
func pagesOf(runs [][]stub.Patch) []Page {
	var pages []Page
	for next := pageByPage(runs); ; {
		patches := next.page()
		if patches == nil {
			break
		}
		pages = append(pages, Page{Addr: patches[0].Addr &^ (PageSize - 1)})
	}
	// Side by side, so that many are read and written by one call, see stretches.
	size := PageSize * len(pages)
	buf := hugepage.Make[byte](2 * size)
	for i := range pages {
		pages[i].Old = buf[i*PageSize : (i+1)*PageSize]
		pages[i].New = buf[size+i*PageSize : size+(i+1)*PageSize]
	}
	return pages
}

// Crosses says whether the patch isn't all on one page.
func Crosses(p *stub.Patch) bool { return p.Addr%PageSize+uint64(len(p.New())) > PageSize }

// Prepare reads the pages that the patches lie on and applies them to copies. No patch of a site crosses a page, so
// each write of a page does whole sites, or none if we are killed before it. It fails when the bytes there aren't the
// patches' old ones.
//
// The layers are the pages to be written one after the other, so that at every moment, should the writing end there, all that is
// written leads to, and relies on, what is written already: first islands, then most sites, then those of higher levels.
// all are the pages as they are in the end.
func Prepare(mem Memory, patches ...[]stub.Patch) (layers [][]Page, all []Page, err error) {
	var runs [][]stub.Patch
	for _, list := range patches {
		runs = append(runs, inRuns(list)...)
	}
	all = pagesOf(runs)
	cores := max(1, min(runtime.GOMAXPROCS(0), len(all)/leastPages))
	parts, errs := make([][][]Page, cores), make([]error, cores)
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

// layersOf is Prepare for some of all pages that runs are on, in their order.
func layersOf(mem Memory, pages []Page, runs [][]stub.Patch) (layers [][]Page, err error) {
	if len(pages) == 0 {
		return nil, nil
	}
	if err := readPages(mem, pages); err != nil {
		return nil, err
	}
	next := pageByPage(runs)
	next.skip(pages[0].Addr)
	for i := range pages {
		pg, patches := &pages[i], next.page()
		for k := range patches {
			p := &patches[k]
			if Crosses(p) {
				return nil, fmt.Errorf("callreel: %w: the site at %#x crosses a page", refusal.Err, p.Addr)
			}
			if at := pg.Old[p.Addr-pg.Addr:][:len(p.Old())]; !bytes.Equal(at, p.Old()) {
				return nil, fmt.Errorf("callreel: %w: at %#x there is % x instead of % x", Err, p.Addr, at, p.Old())
			}
		}
		layers = pg.layer(layers, patches)
	}
	return layers, nil
}

// layer applies the patches to the page, level by level, and adds what it is then to the layers. Patches that have nothing to do with
// those of other pages are written with the first.
func (pg *Page) layer(layers [][]Page, patches []stub.Patch) [][]Page {
	copy(pg.New, pg.Old)
	first := uint8(math.MaxUint8)
	for i := range patches {
		if p := &patches[i]; !p.Alone {
			first = min(first, p.Level)
		}
	}
	if first == math.MaxUint8 {
		first = 0
	}
	for level, unwritten := first, len(patches); unwritten > 0; level++ {
		before := unwritten
		for i := range patches {
			if p := &patches[i]; p.Alone && level == first || !p.Alone && p.Level == level {
				copy(pg.New[p.Addr-pg.Addr:], p.New())
				unwritten--
			}
		}
		if unwritten == before {
			continue
		}
		now := pg.New
		if unwritten > 0 {
			now = slices.Clone(now)
		}
		layers = addLayer(layers, int(level), Page{Addr: pg.Addr, Old: pg.Old, New: now})
	}
	return layers
}

// stretches calls move with one side of the pages, with all at once that follow one another, both there and in our memory.
func stretches(pages []Page, side func(*Page) []byte, move func(buf []byte, addr uint64) (int, error)) error {
	for len(pages) > 0 {
		all := side(&pages[0])
		all = all[:cap(all)]
		n := 1
		for n < len(pages) && pages[n].Addr == pages[n-1].Addr+PageSize && len(all) > n*PageSize && &all[n*PageSize] == &side(&pages[n])[0] {
			n++
		}
		if _, err := move(all[:n*PageSize], pages[0].Addr); err != nil {
			return err
		}
		pages = pages[n:]
	}
	return nil
}

func readPages(mem Memory, pages []Page) error { return stretches(pages, OldSide, mem.ReadAt) }

// writePages writes one side of the pages. The kernel copies them page by page.
func writePages(mem Memory, pages []Page, side func(*Page) []byte) error {
	return stretches(pages, side, mem.WriteAt)
}

// Write writes the new side of many pages. None depends on another.
func Write(mem Memory, pages []Page) error {
	return onAllCores(pages, func(some []Page) error { return writePages(mem, some, NewSide) })
}

// firstAtMost is how long a core does nothing but write pages.
const firstAtMost = 500 * time.Millisecond

// onAllCores has all cores write pages, and before others: the process is stopped meanwhile. Each takes some that are left, and nobody waits for
// one that hasn't taken any: on a busy machine it may come late.
func onAllCores(pages []Page, write func(some []Page) error) error {
	parts := (len(pages) + leastPages - 1) / leastPages
	errs := make([]error, parts)
	var next, written atomic.Int64
	done := make(chan struct{})
	take := func() {
		i := int(next.Add(1)) - 1
		if i >= parts {
			return
		}
		defer foremost.Come(firstAtMost)()
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

func OldSide(p *Page) []byte { return p.Old }
func NewSide(p *Page) []byte { return p.New }

// SameMemory omits the pages that are not, in the maps of now, what they were in the maps of before: a library was
// unloaded since, and something else may have taken its place. Mostly it is the slice itself.
func SameMemory(pages []Page, before, now []process.Mapping) []Page {
	var lo, hi uint64 // where that is known
	var same bool
	is := func(p *Page) bool {
		if p.Addr < lo || p.Addr >= hi {
			same = process.SameMapping(before, now, p.Addr)
			lo, hi = p.Addr, p.Addr+PageSize
			if a, b := process.FindMapping(before, p.Addr), process.FindMapping(now, p.Addr); a != nil && b != nil {
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

// Changed lists the mappings of pages whose bytes are no longer those that were read, by their starts. Only the doubtful pages
// are looked at.
func Changed(mem Memory, pages []Page, maps []process.Mapping, doubtful func(p *Page) bool) (map[uint64]bool, error) {
	var again []Page
	for i := range pages {
		if p := &pages[i]; doubtful(p) {
			again = append(again, Page{Addr: p.Addr, New: p.Old})
		}
	}
	buf := make([]byte, len(again)*PageSize)
	for i := range again {
		again[i].Old = buf[i*PageSize:][:PageSize]
	}
	asked := slices.Clone(again)
	again, err := ReadThere(mem, again)
	if err != nil {
		return nil, err
	}
	found := map[uint64]bool{}
	if len(again) < len(asked) {
		for i := range asked { // all of them are to be looked at anew
			if m := process.FindMapping(maps, asked[i].Addr); m != nil {
				found[m.Start] = true
			}
		}
	}
	for i := range again {
		if m := process.FindMapping(maps, again[i].Addr); m != nil && !bytes.Equal(again[i].Old, again[i].New) {
			found[m.Start] = true
		}
	}
	return found, nil
}

// Without omits the pages of those mappings. Mostly it is the slice itself.
func Without(pages []Page, maps []process.Mapping, starts map[uint64]bool) []Page {
	if len(starts) == 0 {
		return pages
	}
	return slices.DeleteFunc(slices.Clone(pages), func(p Page) bool {
		m := process.FindMapping(maps, p.Addr)
		return m == nil || starts[m.Start]
	})
}

// Restore makes the pages that undo the patches, from what is in memory now. Bytes that are neither a patch's new
// ones nor its old ones were changed by somebody else; they are left and counted. Patches where no code is mapped any
// more went with their library.
func Restore(mem Memory, maps []process.Mapping, patches []stub.Patch) (pages []Page, foreign int, err error) {
	parts := partsByPage(inCode(maps, patches))
	kept, counts, errs := make([][]Page, len(parts)), make([]int, len(parts)), make([]error, len(parts))
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
func partsByPage(sorted []stub.Patch) (parts [][]stub.Patch) {
	n := max(1, min(runtime.GOMAXPROCS(0), len(sorted)/leastPatches))
	for from, i := 0, 1; i <= n; i++ {
		to := max(from, i*len(sorted)/n)
		for to > from && to < len(sorted) && sorted[to].Addr&^(PageSize-1) == sorted[to-1].Addr&^(PageSize-1) {
			to++
		}
		parts = append(parts, sorted[from:to])
		from = to
	}
	return parts
}

// restorePart is Restore for some of the patches, in the order of their addresses.
func restorePart(mem Memory, sorted []stub.Patch) (pages []Page, foreign int, err error) {
	if pages, err = ReadThere(mem, pagesOf([][]stub.Patch{sorted})); err != nil {
		return nil, 0, err
	}
	k := 0
	keep := pages[:0]
	for _, pg := range pages {
		copy(pg.New, pg.Old)
		for k < len(sorted) && sorted[k].Addr < pg.Addr {
			k++ // its page is gone
		}
		for ; k < len(sorted) && sorted[k].Addr-pg.Addr < PageSize; k++ {
			p := &sorted[k]
			if Crosses(p) {
				foreign++ // no recorder wrote this
				continue
			}
			at := pg.New[p.Addr-pg.Addr:][:len(p.New())]
			switch {
			case bytes.Equal(at, p.New()):
				copy(at, p.Old())
			case !bytes.Equal(at, p.Old()):
				foreign++
			}
		}
		if !bytes.Equal(pg.New, pg.Old) {
			keep = append(keep, pg)
		}
	}
	return keep, foreign, nil
}

// Split separates islands from sites.
func Split(patches []stub.Patch) (islands, sites []stub.Patch) {
	for _, p := range patches {
		if p.Island {
			islands = append(islands, p)
		} else {
			sites = append(sites, p)
		}
	}
	return islands, sites
}
