package sampler

import (
	"context"
	"errors"
	"strings"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/object/pclntab"
	"github.com/callreel/callreel/symbols"
)

// MapNames is a Symbolizer over symbol maps: with files, lines and inlined calls where
// an image has debug information or its map is in the store, and by symbol tables for
// the others. It must be closed.
type MapNames struct {
	ctx    context.Context
	finder *symbols.Finder
	maps   map[*Image]*imageNames // nil where there is none
	frames []symbols.Frame
	calls  []Call
	tables TableNames
}

// imageNames is the map of one image.
type imageNames struct {
	*symbols.Map
	definitions *definitionNames
}

// Close closes the map.
func (n *imageNames) Close() error {
	return errors.Join(n.Map.Close(), n.definitions.close())
}

// NewMapNames makes a MapNames that finds and makes maps with a finder. ctx ends the
// making of maps; symbol tables have to do then.
func NewMapNames(ctx context.Context, finder *symbols.Finder) *MapNames {
	return &MapNames{ctx: ctx, finder: finder, maps: map[*Image]*imageNames{}}
}

// Close closes the maps. Names that were given stay valid.
func (n *MapNames) Close() error {
	var errs []error
	for _, m := range n.maps {
		if m != nil {
			errs = append(errs, m.Close())
		}
	}
	clear(n.maps)
	return errors.Join(errs...)
}

// Calls implements Symbolizer.
func (n *MapNames) Calls(im *Image, link uint64) []Call {
	m, known := n.maps[im]
	if !known {
		if found := n.open(im); found != nil {
			m = &imageNames{found, newDefinitionNames(im.File(), n.finder.DebugDirs)}
		}
		n.maps[im] = m
	}
	if m == nil {
		return n.tables.Calls(im, link)
	}
	n.frames, _ = m.Lookup(link, n.frames[:0])
	if len(n.frames) == 0 {
		return n.tables.Calls(im, link)
	}
	n.calls = n.calls[:0]
	for k := range n.frames {
		f := &n.frames[k]
		function := strings.Clone(f.Function()) // it may alias the map
		if !f.Inlined {
			if name := m.definitions.name(n.ctx, link, f.FunctionStart, f.Linkage); name != f.Linkage {
				function = demangle.Name(name)
			}
		}
		n.calls = append(n.calls, Call{
			Function: function, Linkage: strings.Clone(f.Linkage),
			File: strings.Clone(f.File()), Line: f.Line, Inlined: f.Inlined,
		})
	}
	return n.calls
}

// open returns the map of an image, nil when nothing better than its symbol tables is
// at hand. Maps of symbol tables alone would only take time to make.
func (n *MapNames) open(im *Image) *symbols.Map {
	file := im.File()
	if file == nil {
		return nil
	}
	if m, err := n.finder.StoredFor(file); err == nil {
		if functions, _, _, _ := m.Counts(); functions > 0 || !hasGoTable(file) { // else it is of a time when that wasn't read
			return m
		}
		_ = m.Close() // it is not used
	}
	if !n.hasDebug(file) {
		return nil
	}
	w := symbols.Wanted{ID: file.ID(), Path: im.Path}
	if im.Deleted || w.ID == "" { // what is at the path now may be anything
		w.Path = file.Name()
	}
	m, err := n.finder.Find(n.ctx, w)
	if err != nil && w.Path != file.Name() { // the process may see other files than we do
		w.Path = file.Name()
		m, err = n.finder.Find(n.ctx, w)
	}
	if err != nil {
		return nil
	}
	return m
}

// hasDebug says whether debug information of the image is on this machine.
func (n *MapNames) hasDebug(file *object.Image) bool {
	if file.Section(".debug_info") != nil || hasGoTable(file) {
		return true
	}
	search := object.DebugSearch{Dirs: n.finder.DebugDirs}
	debug, err := search.Debug(file)
	if err != nil {
		return false
	}
	_ = debug.Close() // only looked for
	return true
}

// hasGoTable says whether an image is of a Go program, whose own table of functions has lines and inlined calls.
func hasGoTable(file *object.Image) bool { return pclntab.Section(file) != nil }
