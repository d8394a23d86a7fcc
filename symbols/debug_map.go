package symbols

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/callreel/callreel/dwarf"
	"github.com/callreel/callreel/object"
)

// Apple's linker leaves DWARF in the object files, and writes into the image which functions came from which (the debug map), for
// dsymutil to put together. Where nobody has done that, the object files are read as they are.

// linkedObject is one object file with DWARF, and where its functions have gone.
type linkedObject struct {
	data  *dwarf.Data
	moves []move // sorted by start
	tag   dwarf.String
}

// move is a stretch of code of an object file, and what takes its addresses to the image's.
type move struct{ start, end, delta uint64 }

// The number of the object file stands above the offset in a string's reference, which fits into the bits below.
const (
	objectShift = 32
	maxObjects  = 1<<(56-objectShift) - 1
)

// openDebugMap opens the object files that an image's debug map names. What isn't there is told in BuildStats.Missing.
func (b *builder) openDebugMap(ctx context.Context) error {
	if b.image.Format != object.MachO || !b.opts.Search || b.opts.Debug != nil {
		return nil
	}
	search := &object.DebugSearch{Dirs: b.opts.DebugDirs}
	objects, err := search.Objects(b.image)
	if errors.Is(err, object.ErrNoDebug) {
		return nil
	}
	if err != nil {
		b.problem(err)
		return nil
	}
	b.objects = objects
	const mostMissing = 16
	for k := range min(len(objects.Files), maxObjects) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := b.openObject(ctx, k); err != nil && len(b.stats.Missing) < mostMissing {
			b.stats.Missing = append(b.stats.Missing, err)
		}
	}
	return nil
}

// openObject opens one of them.
func (b *builder) openObject(ctx context.Context, k int) error {
	im, err := b.objects.Open(k)
	if err != nil {
		return err
	}
	data, err := dwarf.Open(ctx, im, dwarf.Options{Workers: b.opts.Workers})
	if errors.Is(err, dwarf.ErrNoDWARF) {
		return nil // of assembly, say
	}
	if err != nil {
		return err
	}
	for _, err := range data.Problems() {
		b.problem(err)
	}
	moves, err := movesOf(im, b.objects.Files[k].Functions)
	if err != nil {
		return errors.Join(err, data.Close())
	}
	b.stats.Sources = append(b.stats.Sources, im.FileInfo())
	b.linked = append(b.linked, &linkedObject{data: data, moves: moves, tag: dwarf.String(len(b.linked)+1) << objectShift})
	return nil
}

// movesOf says where functions of an object file have gone. Those that the linker has left out, or has taken from another file, don't
// count.
func movesOf(im *object.Image, functions []object.MappedFunction) ([]move, error) {
	list, err := im.Symbols()
	if err != nil {
		return nil, err
	}
	if err := im.Take(uint64(len(list))*64, "a table of so many symbols"); err != nil {
		return nil, err
	}
	at := make(map[string]uint64, len(list))
	for k := range list {
		if hasSection(list[k].Section) {
			at[list[k].Name] = list[k].Addr
		}
	}
	var moves []move
	for _, f := range functions {
		start, ok := at[f.Name]
		if ok && f.Size > 0 && start+f.Size > start && f.Addr+f.Size > f.Addr {
			moves = append(moves, move{start, start + f.Size, f.Addr - start})
		}
	}
	slices.SortFunc(moves, func(a, b move) int { return cmp.Compare(a.start, b.start) })
	// What overlaps is damage, and would make one place two.
	kept := moves[:0]
	for _, m := range moves {
		if len(kept) == 0 || m.start >= kept[len(kept)-1].end {
			kept = append(kept, m)
		}
	}
	return kept, nil
}

// from returns the index of the first move that ends behind an address.
func (o *linkedObject) from(addr uint64) int {
	return sort.Search(len(o.moves), func(k int) bool { return o.moves[k].end > addr })
}

// link takes what a unit says to the image's addresses, and its strings to those of all object files. What wasn't linked has no code any
// more.
func (o *linkedObject) link(c *dwarf.Contents) {
	for k := range c.Functions {
		o.mark(&c.Functions[k].Name)
	}
	for k := range c.Inlines {
		o.mark(&c.Inlines[k].Name)
	}
	for k := range c.Files {
		f := &c.Files[k]
		o.mark(&f.CompDir)
		o.mark(&f.Dir)
		o.mark(&f.Name)
	}
	ends := map[int]uint64{} // where the code of moves ends, by their numbers: behind it is padding, which the linker counts in
	for k := range c.Functions {
		for _, r := range span(c.Ranges, c.Functions[k].Ranges) {
			if at := o.from(r.Low); at < len(o.moves) && o.moves[at].start == r.Low {
				ends[at] = r.High
			}
		}
	}
	for k := range c.Ranges {
		r := &c.Ranges[k]
		at := o.from(r.Low)
		if at == len(o.moves) || o.moves[at].start > r.Low || r.Low >= r.High {
			*r = dwarf.Range{}
			continue
		}
		m := &o.moves[at]
		r.Low, r.High = r.Low+m.delta, min(r.High, m.end)+m.delta
	}
	c.Rows = o.linkRows(c.Rows, ends)
}

// mark puts the object file's number into a string's reference.
func (o *linkedObject) mark(s *dwarf.String) {
	switch {
	case *s == 0:
	case *s&(1<<56-1)>>objectShift != 0:
		*s = 0 // beyond 4 GB, which no section of an object file is
	default:
		*s |= o.tag
	}
}

// linkRows cuts the line table, whose sequences go over all functions of a section, into one for each function.
func (o *linkedObject) linkRows(rows []dwarf.Row, ends map[int]uint64) []dwarf.Row {
	var out []dwarf.Row
	for k := 0; k+1 < len(rows); k++ {
		row := &rows[k]
		if row.End {
			continue
		}
		start, end := row.Addr, rows[k+1].Addr
		for at := o.from(start); at < len(o.moves) && o.moves[at].start < end; at++ {
			m := &o.moves[at]
			last := min(end, m.end)
			if code, known := ends[at]; known {
				last = min(last, code)
			}
			if last <= max(start, m.start) {
				continue
			}
			low, high := max(start, m.start)+m.delta, last+m.delta
			if n := len(out); n > 0 && out[n-1].End && out[n-1].Addr == low && low != m.start+m.delta {
				out = out[:n-1] // it goes on
			}
			out = append(out, dwarf.Row{Addr: low, File: row.File, Line: row.Line}, dwarf.Row{Addr: high, End: true})
		}
	}
	return out
}

// linkedString returns a string of the object files.
func (b *builder) linkedString(s dwarf.String) []byte {
	const numbers = (1<<(56-objectShift) - 1) << objectShift
	k := int(s&numbers>>objectShift) - 1
	if k < 0 || k >= len(b.linked) {
		return nil
	}
	return b.linked[k].data.Bytes(s &^ numbers)
}

// closeDebugMap gives up the object files.
func (b *builder) closeDebugMap() error {
	var errs []error
	for _, o := range b.linked {
		errs = append(errs, o.data.Close())
	}
	if b.objects != nil {
		errs = append(errs, b.objects.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("symbols: %s: %w", b.image.Name(), err)
	}
	return nil
}
