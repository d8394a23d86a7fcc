package sampler

import (
	"context"
	"errors"
	"io/fs"
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
	// FetchFailed, if set, is told of the first fetch that has failed, other than by there being no such file.
	FetchFailed func(err error)

	ctx     context.Context
	finder  *symbols.Finder // that fetches nothing any more
	fetcher symbols.Fetcher // nil for none
	fetched fetchedFiles
	asked   map[string]bool // IDs of images that were prepared
	failed  bool

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

// NewMapNames makes a MapNames that finds and makes maps with a finder, whose fetcher only Prepare asks. ctx ends the
// making of maps; symbol tables have to do then.
func NewMapNames(ctx context.Context, finder *symbols.Finder) *MapNames {
	n := &MapNames{ctx: ctx, fetcher: finder.Fetcher, fetched: fetchedFiles{}, asked: map[string]bool{}, maps: map[*Image]*imageNames{}}
	own := *finder
	own.Fetcher = n.fetched
	n.finder = &own
	return n
}

// fetchedFiles are those that were fetched, by ID and kind.
type fetchedFiles map[[2]string]string

// Fetch implements symbols.Fetcher. It asks nobody.
func (f fetchedFiles) Fetch(_ context.Context, id, kind string) (string, error) {
	path, ok := f[[2]string{id, kind}]
	if !ok {
		return "", fs.ErrNotExist
	}
	return path, nil
}

// Prepare implements Preparer: it fetches debug information of images for which there is none on this machine. An image
// is asked for once.
func (n *MapNames) Prepare(ctx context.Context, images []*Image) {
	if n.fetcher == nil {
		return
	}
	for _, im := range images {
		id := im.ID()
		if id == "" || n.asked[id] || strings.HasPrefix(im.Path, "[") || ctx.Err() != nil {
			continue
		}
		n.asked[id] = true
		file := im.File()
		if file == nil || n.isStored(file) || n.hasDebug(file) {
			continue
		}
		for _, kind := range [...]string{symbols.FetchDebugInfo, symbols.FetchExecutable} {
			path, err := n.fetcher.Fetch(ctx, id, kind)
			if err == nil {
				n.fetched[[2]string{id, kind}] = path
				break
			}
			if !errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil && !n.failed && n.FetchFailed != nil {
				n.failed = true
				n.FetchFailed(err)
			}
		}
	}
}

func (n *MapNames) isStored(file *object.Image) bool {
	m, err := n.finder.StoredFor(file)
	if err != nil {
		return false
	}
	_ = m.Close() // only looked for
	return true
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
	for _, kind := range [...]string{symbols.FetchDebugInfo, symbols.FetchExecutable} {
		if _, ok := n.fetched[[2]string{file.ID(), kind}]; ok {
			return true
		}
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
