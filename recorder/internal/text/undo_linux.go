package text

import (
	"bytes"
	"math"
	"slices"
	"sync"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// An Undo is text as it is to be Undo, made from what is in memory before the process is stopped.
type Undo struct {
	Pages   []Page   // those that change, as they are in the end
	Layers  [][]Page // by levels: to be written from the highest on
	Foreign int      // sites that somebody else has changed
}

// PrepareUndo prepares the restoring of islands and sites, so that at every moment, should the writing end there, whatever isn't
// Undo yet leads to, and relies on, what isn't either. It is Prepare the other way round. No page may be gone.
func PrepareUndo(mem Memory, maps []process.Mapping, patches []stub.Patch) (*Undo, error) {
	parts := partsByPage(inCode(maps, patches))
	done, errs := make([]Undo, len(parts)), make([]error, len(parts))
	var wg sync.WaitGroup
	for i, part := range parts {
		wg.Go(func() { errs[i] = done[i].read(mem, part) })
	}
	wg.Wait()
	all := &Undo{}
	for i := range done {
		if errs[i] != nil {
			return nil, errs[i]
		}
		all.Pages = append(all.Pages, done[i].Pages...)
		for level, pages := range done[i].Layers {
			all.Layers = addLayer(all.Layers, level, pages...)
		}
		all.Foreign += done[i].Foreign
	}
	return all, nil
}

// read makes the pages that patches, in the order of their addresses, are on.
func (r *Undo) read(mem Memory, sorted []stub.Patch) error {
	runs := [][]stub.Patch{sorted}
	pages := pagesOf(runs)
	if err := readPages(mem, pages); err != nil {
		return err
	}
	next := pageByPage(runs)
	for i := range pages {
		r.add(&pages[i], next.page())
	}
	return nil
}

// add undoes patches on a copy of the page, from the highest level on, and adds what it is then to the layers. Those that have nothing
// to do with other pages' are undone with the first.
func (r *Undo) add(pg *Page, patches []stub.Patch) {
	copy(pg.New, pg.Old)
	first, last := -1, math.MaxInt
	for i := range patches {
		if p := &patches[i]; !p.Alone {
			first, last = max(first, int(p.Level)), min(last, int(p.Level))
		}
	}
	if first < 0 {
		first, last = 0, 0
	}
	before := -1 // the level at which it is written before
	for level := first; level >= last; level-- {
		changed := false
		for i := range patches {
			p := &patches[i]
			if p.Alone && level != first || !p.Alone && int(p.Level) != level || !r.isIn(pg, p) {
				continue
			}
			if !changed && before >= 0 {
				pg.Partly = true
				r.Layers[before][len(r.Layers[before])-1].New = slices.Clone(pg.New)
			}
			changed = true
			copy(pg.New[p.Addr-pg.Addr:], p.Old())
		}
		if changed {
			r.Layers = addLayer(r.Layers, level, Page{Addr: pg.Addr, Old: pg.Old, New: pg.New})
			before = level
		}
	}
	if before >= 0 {
		r.Pages = append(r.Pages, *pg)
	}
}

// isIn says whether a patch is in place, and counts sites that are neither as they were nor as they are to be.
func (r *Undo) isIn(pg *Page, p *stub.Patch) bool {
	if !Crosses(p) { // else no recorder wrote this
		at := pg.New[p.Addr-pg.Addr:][:len(p.New())]
		if bytes.Equal(at, p.New()) {
			return true
		}
		if bytes.Equal(at, p.Old()) {
			return false
		}
	}
	if !p.Island {
		r.Foreign++
	}
	return false
}

// addLayer adds pages to the layer of a level.
func addLayer(layers [][]Page, level int, pages ...Page) [][]Page {
	for len(layers) <= level {
		layers = append(layers, nil)
	}
	layers[level] = append(layers[level], pages...)
	return layers
}

// inCode returns the patches where code is mapped, in the order of their addresses. Others went with their library.
func inCode(maps []process.Mapping, patches []stub.Patch) []stub.Patch {
	sorted := ByAddress(patches)
	var m *process.Mapping // the last one
	is := func(p *stub.Patch) bool {
		if m == nil || !m.Contains(p.Addr) {
			m = process.FindMapping(maps, p.Addr)
		}
		return m != nil && m.Perm&process.PermExec != 0
	}
	for i := range sorted {
		if is(&sorted[i]) {
			continue
		}
		kept := slices.Clone(sorted[:i])
		for i++; i < len(sorted); i++ {
			if is(&sorted[i]) {
				kept = append(kept, sorted[i])
			}
		}
		return kept
	}
	return sorted
}
