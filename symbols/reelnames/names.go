package reelnames

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/symbols"
)

// MaxImages is how many images are looked for; a reel may name any number.
const MaxImages = 1024

// Lines says for which functions that have names files and lines are looked for. Those without have them with their names.
type Lines uint8

const (
	// LinesAtHand looks for them on this machine, where that takes a second or two at most: in maps that were made before,
	// and in debug information of MaxInfo bytes.
	LinesAtHand Lines = iota
	// NoLines doesn't.
	NoLines
	// AllLines looks for them everywhere that names are looked for.
	AllLines
)

// MaxInfo bounds the debug information that is read for files and lines at hand, in bytes.
const MaxInfo = 64 << 20

// Names is a reel.Namer. It looks for an image's map when the first function of it needs a name, which may take minutes
// where one must be made.
type Names struct {
	// Lines is set before the first use.
	Lines Lines

	// Looked, if set, is told of each image that was looked for.
	Looked func(im *reel.Image)

	ctx    context.Context
	finder *symbols.Finder
	near   *symbols.Finder // that asks nobody

	mu     sync.RWMutex      // held for reading while maps are read from, else for looking for images
	fixed  bool              // nothing is looked for any more
	images map[string]*image // by ID
}

// image is what is known of one.
type image struct {
	m    *symbols.Map // nil if there is none
	near bool         // it was looked for at hand
	far  bool         // it was looked for everywhere
	err  error        // why there is none, if it was looked for everywhere
	path string       // of its file

	mu    sync.Mutex
	files map[uint32]string
}

// New returns Names that look for maps until ctx ends.
func New(ctx context.Context, finder *symbols.Finder) *Names {
	near := *finder
	near.Fetcher = nil
	return &Names{ctx: ctx, finder: finder, near: &near, images: map[string]*image{}}
}

// Name implements reel.Namer. A function that has a name keeps it, unless symbols give its address one with fewer
// leading underscores: a stripped image has only what others link to, as __memcpy for what is memcpy inside. An image
// without an ID has no names: nothing would tell it from another.
func (n *Names) Name(im *reel.Image, functions []*reel.Function, known []reel.Naming) {
	if im.ID == "" {
		return
	}
	wanted, everywhere := false, n.Lines == AllLines
	for i, fn := range functions {
		unnamed := Unnamed(&known[i], fn)
		wanted = wanted || unnamed || n.Lines != NoLines || strings.HasPrefix(known[i].Name, "_")
		everywhere = everywhere || unnamed
	}
	if !wanted {
		return
	}
	n.mu.RLock()
	defer func() { n.mu.RUnlock() }()
	k := n.images[im.ID]
	if k == nil || !k.far && (everywhere || !k.near) {
		n.mu.RUnlock()
		n.mu.Lock()
		n.of(im, everywhere)
		n.mu.Unlock()
		n.mu.RLock()
		k = n.images[im.ID]
	}
	if k == nil || k.m == nil {
		return
	}
	r := reader{image: k, lines: n.Lines}
	for i, fn := range functions {
		r.name(fn, i, &known[i])
	}
	r.finish(known)
}

// reader names functions of one image, one after the other.
type reader struct {
	*image
	lines  Lines
	frames []symbols.Frame
	fileID uint32 // whose name is file
	file   string
	text   []byte // names that were found, one behind the other: one allocation is enough for them
	found  []foundName
}

// foundName is where the name of a function is in reader.text, and whose it is.
type foundName struct{ from, to, index int }

// finish gives the functions their names. They are not the map's, which may be closed.
func (r *reader) finish(known []reel.Naming) {
	text := string(r.text)
	for _, n := range r.found {
		known[n.index].Name = text[n.from:n.to]
	}
}

// name completes what is known of the function with that index.
func (r *reader) name(fn *reel.Function, index int, own *reel.Naming) {
	unnamed := Unnamed(own, fn)
	if !unnamed && r.lines == NoLines && !strings.HasPrefix(own.Name, "_") {
		return
	}
	r.frames, _ = r.m.Lookup(fn.Addr, r.frames[:0])
	if len(r.frames) == 0 {
		return
	}
	// What is inlined at the very entry comes before the function itself.
	f := &r.frames[len(r.frames)-1]
	if f.Line != 0 {
		own.File, own.Line = r.fileOf(f), f.Line
	}
	name, chosen := r.m.Choice(fn.Addr)
	switch {
	case !unnamed && (!chosen || symbols.Underscores(name) >= symbols.Underscores(own.Name)):
		return
	case !chosen:
		name = f.Linkage
		if at := strings.IndexByte(name, '@'); at > 0 {
			name = name[:at] // the version of a symbol
		}
	}
	if name == "" {
		return
	}
	from := len(r.text)
	r.text = append(r.text, name...)
	if !chosen && f.FunctionStart != fn.Addr { // a part of it that looked like a function of its own
		r.text = strconv.AppendUint(append(r.text, "+0x"...), fn.Addr-f.FunctionStart, 16)
	}
	r.found = append(r.found, foundName{from, len(r.text), index})
	own.From = r.source(f)
}

// Prepare looks for the images of all functions of a reel that have no name. Name then answers at once, by what was found
// so far.
func (n *Names) Prepare(f *reel.File) {
	wanted := map[reel.ImageID]bool{}
	f.Functions(func(_ uint32, fn reel.Function) bool {
		if !wanted[fn.Image] && Unnamed(&reel.Naming{Name: fn.Name}, &fn) {
			wanted[fn.Image] = true
		}
		return true
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fixed = false
	for _, id := range slices.Sorted(maps.Keys(wanted)) {
		if im, ok := f.Image(id); ok && im.ID != "" {
			n.of(&im, true)
		}
	}
	n.fixed = true
}

// fileOf is the frame's file. Many functions share one.
func (r *reader) fileOf(f *symbols.Frame) string {
	if r.file == "" || r.fileID != f.FileID {
		r.mu.Lock()
		defer r.mu.Unlock()
		name, ok := r.files[f.FileID]
		if !ok {
			name = strings.Clone(f.File())
			r.files[f.FileID] = name
		}
		r.file, r.fileID = name, f.FileID
	}
	return r.file
}

// source says by what the map names a function: where debug information has no line for it, by a symbol.
func (k *image) source(f *symbols.Frame) reel.NameSource {
	switch {
	case k.m.Fetched():
		return reel.NamedByDebuginfod
	case f.Line != 0:
		return reel.NamedByDWARF
	}
	return reel.NamedBySymbols
}

// Unnamed says whether there is no name for a function yet: it is called by its address.
func Unnamed(own *reel.Naming, fn *reel.Function) bool {
	at := strings.LastIndex(own.Name, "0x")
	if at <= 0 {
		return own.Name == ""
	}
	var digits [16]byte
	if string(strconv.AppendUint(digits[:0], fn.Addr, 16)) != own.Name[at+len("0x"):] {
		return false
	}
	return own.Name[at-1] == '+' || own.Name[:at] == "found_"
}

// of looks for an image, unless it was looked for before. It is asked with n.mu held.
func (n *Names) of(im *reel.Image, everywhere bool) {
	k := n.images[im.ID]
	if k != nil && (k.far || k.near && !everywhere) || n.fixed || n.ctx.Err() != nil {
		return
	}
	if k == nil {
		if len(n.images) >= MaxImages {
			return
		}
		k = &image{files: map[uint32]string{}, path: im.Path}
		n.images[im.ID] = k
	}
	if k.m == nil {
		k.m, k.err = n.find(im, everywhere)
	}
	k.near, k.far = true, k.far || everywhere
	if n.Looked != nil {
		n.Looked(im)
	}
}

// find returns the map of an image, nil if there is none. The error is there only if it was looked for everywhere.
func (n *Names) find(im *reel.Image, everywhere bool) (*symbols.Map, error) {
	wanted := symbols.Wanted{ID: im.ID}
	if filepath.IsAbs(im.Path) { // what is relative to whatever folder is none of the process's
		wanted.Path = im.Path
	}
	if everywhere {
		return n.finder.Find(n.ctx, wanted)
	}
	if m, err := n.near.Stored(wanted); err == nil {
		return m, nil
	}
	if size := n.near.DebugInfo(wanted); size == 0 || size > MaxInfo {
		return nil, nil
	}
	m, err := n.near.Find(n.ctx, wanted)
	if err != nil {
		return nil, nil
	}
	return m, nil
}

// NotFound returns why images have no names that were looked for everywhere: of the first few by path, and of how many in
// all.
func (n *Names) NotFound(most int) (errs []error, all int) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	list := slices.SortedFunc(maps.Values(n.images), func(a, b *image) int { return cmp.Compare(a.path, b.path) })
	for _, k := range list {
		if k.err == nil {
			continue
		}
		if all++; all <= most {
			errs = append(errs, k.err)
		}
	}
	return errs, all
}

// Close closes the maps. Functions that are asked for later have the names that the reel has.
func (n *Names) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var err error
	for _, k := range n.images {
		if k.m != nil {
			if cerr := k.m.Close(); err == nil {
				err = cerr
			}
		}
		k.m, k.near, k.far = nil, true, true
	}
	return err
}
