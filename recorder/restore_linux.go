package recorder

import (
	"bytes"
	"math"
	"slices"
	"sync"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/probe"
)

// restored is text as it is to be restored, made from what is in memory before the process is stopped.
type restored struct {
	pages   []page   // those that change, as they are in the end
	layers  [][]page // by levels: to be written from the highest on
	foreign int      // sites that somebody else has changed
}

// restoreLayers prepares the restoring of islands and sites, so that at every moment, should the writing end there, whatever isn't
// restored yet leads to, and relies on, what isn't either. It is prepareLayers the other way round. No page may be gone.
func restoreLayers(mem memory, maps []process.Mapping, patches []probe.Patch) (*restored, error) {
	parts := partsByPage(inCode(maps, patches))
	done, errs := make([]restored, len(parts)), make([]error, len(parts))
	var wg sync.WaitGroup
	for i, part := range parts {
		wg.Go(func() { errs[i] = done[i].read(mem, part) })
	}
	wg.Wait()
	all := &restored{}
	for i := range done {
		if errs[i] != nil {
			return nil, errs[i]
		}
		all.pages = append(all.pages, done[i].pages...)
		for level, pages := range done[i].layers {
			all.layers = addLayer(all.layers, level, pages...)
		}
		all.foreign += done[i].foreign
	}
	return all, nil
}

// read makes the pages that patches, in the order of their addresses, are on.
func (r *restored) read(mem memory, sorted []probe.Patch) error {
	runs := [][]probe.Patch{sorted}
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
func (r *restored) add(pg *page, patches []probe.Patch) {
	copy(pg.new, pg.old)
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
				pg.partly = true
				r.layers[before][len(r.layers[before])-1].new = slices.Clone(pg.new)
			}
			changed = true
			copy(pg.new[p.Addr-pg.addr:], p.Old())
		}
		if changed {
			r.layers = addLayer(r.layers, level, page{addr: pg.addr, old: pg.old, new: pg.new})
			before = level
		}
	}
	if before >= 0 {
		r.pages = append(r.pages, *pg)
	}
}

// isIn says whether a patch is in place, and counts sites that are neither as they were nor as they are to be.
func (r *restored) isIn(pg *page, p *probe.Patch) bool {
	if !crosses(p) { // else no recorder wrote this
		at := pg.new[p.Addr-pg.addr:][:len(p.New())]
		if bytes.Equal(at, p.New()) {
			return true
		}
		if bytes.Equal(at, p.Old()) {
			return false
		}
	}
	if !p.Island {
		r.foreign++
	}
	return false
}

// addLayer adds pages to the layer of a level.
func addLayer(layers [][]page, level int, pages ...page) [][]page {
	for len(layers) <= level {
		layers = append(layers, nil)
	}
	layers[level] = append(layers[level], pages...)
	return layers
}

// inCode returns the patches where code is mapped, in the order of their addresses. Others went with their library.
func inCode(maps []process.Mapping, patches []probe.Patch) []probe.Patch {
	sorted := byAddress(patches)
	var m *process.Mapping // the last one
	is := func(p *probe.Patch) bool {
		if m == nil || !m.Contains(p.Addr) {
			m = mappingAt(maps, p.Addr)
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
