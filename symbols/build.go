package symbols

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/callreel/callreel/dwarf"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/object/pclntab"
)

// BuildOptions says where the image's debug information is. The zero value looks
// for it in the image alone.
type BuildOptions struct {
	// Workers is how many units are read at once; GOMAXPROCS when 0.
	Workers int

	// Search looks for the companions that are not given: the debug file when the
	// image has no DWARF, the supplementary file, split units. Without it only what
	// is given is used.
	Search bool

	// DebugDirs are the folders that Search looks into before the system's, see
	// object.DebugSearch.
	DebugDirs []string

	// Debug is the image's separate debug file, nil for none. It has been checked
	// to belong to the image. It stays the caller's, as do Alt and Split's.
	Debug *object.Image

	// Alt is the file that .gnu_debugaltlink names, nil for none.
	Alt *object.Image

	// FetchAlt opens the file with the ID that .gnu_debugaltlink names, if Search doesn't find it on this machine; nil
	// for none. What it opens is closed after the build.
	FetchAlt func(ctx context.Context, id string) (*object.Image, error)

	// Split opens .dwo and .dwp files, see dwarf.Options; nil leaves split units out.
	Split func(name, compDir string, id uint64) (*object.Image, error)

	// Fetched marks the map as made of what a Fetcher got, see Map.Fetched.
	Fetched bool

	// Progress, if set, is told how many bytes of DWARF have been read of how many.
	// It is called after each unit, from several goroutines at once.
	Progress func(done, total int64)
}

// BuildStats says what went into a map.
type BuildStats struct {
	ID        string        // the image's
	Functions int           // ranges of code with a name
	Inlines   int           // inlined calls
	Rows      int           // changes of function, call, file or line from one address to the next
	DWARF     int64         // bytes of the units that were read
	Units     int           // that were read
	Versions  []int         // of DWARF
	Bytes     int64         // of the map
	Missing   []error       // why files with debug information, which the image names or which are there, are not in the map
	Problems  []error       // damage that cost some of the contents, at most maxProblems
	Lost      int           // problems beyond those
	Sources   []fs.FileInfo // of the files that were read from; nil for an image in memory
}

// maxWorkers bounds BuildOptions.Workers: each worker keeps tables of its own.
const maxWorkers = 256

// maxProblems bounds BuildStats.Problems: a crafted file can be all damage.
const maxProblems = 100

// Build compiles the DWARF and the symbol tables of an image and of its debug file
// into a symbol map and writes that to w, once it is complete. Memory is needed for
// the map, and per worker for one unit.
//
// Damage in one unit does not lose the others: it is told in BuildStats.Problems.
// An image with neither DWARF nor symbols gives a map without functions.
func Build(ctx context.Context, im *object.Image, w io.Writer, opts BuildOptions) (*BuildStats, error) {
	if opts.Workers <= 0 {
		opts.Workers = runtime.GOMAXPROCS(0)
	}
	opts.Workers = min(opts.Workers, maxWorkers)
	b := &builder{image: im, opts: &opts}
	if opts.Search {
		var found companions
		found, b.stats.Missing = searchCompanions(ctx, im, &opts)
		defer found.Close()
	}
	b.noteSources()
	b.stats.ID = im.ID()
	var stats *BuildStats
	var err error
	fault := object.CatchFaults(func() error {
		stats, err = b.build(ctx, w)
		return nil
	})
	if fault != nil {
		return nil, fmt.Errorf("symbols: %s: %w", im.Name(), fault)
	}
	return stats, err
}

// BuildMap is Build into memory. The map must be closed.
func BuildMap(ctx context.Context, im *object.Image, opts BuildOptions) (*Map, *BuildStats, error) {
	var data bytes.Buffer
	stats, err := Build(ctx, im, &data, opts)
	if err != nil {
		return nil, nil, err
	}
	m, err := Parse(im.Name(), data.Bytes())
	if err != nil {
		return nil, nil, err
	}
	m.missing = stats.Missing
	return m, stats, nil
}

// builder is one run of Build.
type builder struct {
	image *object.Image
	opts  *BuildOptions
	data  *dwarf.Data // nil when there is no DWARF
	// golang is a Go program's own table; nil when there is DWARF.
	golang *pclntab.Table
	// objects and linked are those of a debug map, when there is no DWARF elsewhere.
	objects *object.Objects
	linked  []*linkedObject
	code    []region
	table   *symbolTable

	mu    sync.Mutex
	stats BuildStats
}

func (b *builder) build(ctx context.Context, w io.Writer) (*BuildStats, error) {
	if err := b.openDWARF(ctx); err != nil {
		return nil, err
	}
	if b.data != nil {
		defer b.data.Close()
	}
	defer b.closeDebugMap()
	b.readSymbols()
	workers, err := b.readUnits(ctx)
	if err != nil {
		return nil, err
	}
	out := &writer{
		image: filepath.Base(b.image.Name()), id: b.image.ID(), regions: b.code, workers: workers, symbols: b.table,
		blocks:  merge(workers, b.table),
		strings: func(dwarf.String) []byte { return nil },
	}
	out.head = b.header()
	if b.data != nil {
		out.strings = b.data.Bytes
	} else if len(b.linked) > 0 {
		out.strings = b.linkedString
	} else if b.golang != nil {
		out.strings = goString(b.golang)
	}
	if err := out.number(); err != nil {
		return nil, err
	}
	if err := out.lay(); err != nil {
		return nil, err
	}
	for _, k := range workers {
		out.head.inlines += k.inlines
		out.head.rows += k.rows
	}
	b.stats.Functions, b.stats.Inlines, b.stats.Rows = int(out.head.functions), int(out.head.inlines), int(out.head.rows)
	b.stats.Bytes, err = out.write(w)
	if err != nil {
		return nil, err
	}
	return &b.stats, nil
}

// noteSources notes whose files go into the map.
func (b *builder) noteSources() {
	for _, im := range []*object.Image{b.image, b.opts.Debug, b.opts.Alt} {
		if im != nil {
			b.stats.Sources = append(b.stats.Sources, im.FileInfo())
		}
	}
	open := b.opts.Split
	if open == nil {
		return
	}
	b.opts.Split = func(name, compDir string, id uint64) (*object.Image, error) {
		im, err := open(name, compDir, id)
		if err == nil {
			b.mu.Lock()
			b.stats.Sources = append(b.stats.Sources, im.FileInfo())
			b.mu.Unlock()
		}
		return im, err
	}
}

// header is the header without counts, widths and sections.
func (b *builder) header() header {
	h := header{arch: b.image.Arch, format: b.image.Format, class: b.image.Class, base: b.image.BaseAddr()}
	h.flags, h.layout = flagLayout, layoutOf(b.image)
	if b.opts.Fetched {
		h.flags |= flagFetched
	}
	if b.data != nil || len(b.linked) > 0 {
		h.flags |= flagDWARF
	}
	if len(b.table.pieces) > 0 {
		h.flags |= flagSymbols
	}
	if b.image.Type == object.Relocatable {
		h.flags |= flagRelocatable
	}
	return h
}

// openDWARF opens the DWARF of the debug file or of the image, and finds the code.
func (b *builder) openDWARF(ctx context.Context) error {
	opts := dwarf.Options{Alt: b.opts.Alt, Workers: b.opts.Workers, Split: b.opts.Split}
	holder := b.image
	if b.opts.Debug != nil {
		holder = b.opts.Debug
	}
	data, err := dwarf.Open(ctx, holder, opts)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !errors.Is(err, dwarf.ErrNoDWARF) {
			b.problem(err)
		}
		b.code = codeRegions(b.image, linkPlace(b.image))
		if err := b.openDebugMap(ctx); err != nil || len(b.linked) > 0 {
			return err
		}
		if b.golang, err = pclntab.Open(b.image); err != nil {
			b.problem(err)
		}
		return nil
	}
	b.data = data
	for _, err := range data.Problems() {
		b.problem(err)
	}
	b.stats.Versions = data.Versions()
	place := linkPlace(b.image)
	if b.image.Type == object.Relocatable && holder == b.image {
		place = data.Place
	}
	b.code = codeRegions(b.image, place)
	return nil
}

// readSymbols reads the symbol table of the image or, when it has only dynamic
// symbols, of the debug file.
func (b *builder) readSymbols() {
	from := b.image
	if d := b.opts.Debug; d != nil && !hasSymtab(from) && hasSymtab(d) {
		from = d
	}
	place := linkPlace(from)
	if from.Type == object.Relocatable && b.data != nil {
		place = b.data.Place
	}
	var err error
	if b.table, err = newSymbolTable(from, place, b.code); err != nil {
		b.problem(err)
	}
}

// hasSymtab says whether the file holds a symbol table other than the dynamic one.
func hasSymtab(im *object.Image) bool {
	if im.Format == object.ELF {
		for _, s := range im.Sections() {
			if elf.SectionType(s.Type) == elf.SHT_SYMTAB && s.FileSize > 0 {
				return true
			}
		}
	}
	list, err := im.Symbols()
	return err == nil && hasStatic(list)
}

// problem notes damage.
func (b *builder) problem(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.stats.Problems) < maxProblems {
		b.stats.Problems = append(b.stats.Problems, err)
	} else {
		b.stats.Lost++
	}
}

// readUnits turns all units into blocks.
func (b *builder) readUnits(ctx context.Context) ([]*worker, error) {
	if b.data == nil && len(b.linked) == 0 {
		w := b.newWorker()
		if b.golang != nil {
			if err := b.readGo(w); err != nil {
				return nil, fmt.Errorf("symbols: %s: %w", b.image.Name(), err)
			}
		}
		return []*worker{w}, nil
	}
	units, total := b.units()
	b.stats.Units, b.stats.DWARF = len(units), total
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var next, done atomic.Int64
	workers := make([]*worker, max(1, min(b.opts.Workers, len(units))))
	var group sync.WaitGroup
	for n := range workers {
		w := b.newWorker()
		// In C and C++ there are some 3 KB of DWARF to a callee.
		w.callees.reserve(int(total / 4096 / int64(len(workers))))
		workers[n] = w
		group.Go(func() {
			for ctx.Err() == nil {
				k := int(next.Add(1)) - 1
				if k >= len(units) {
					return
				}
				u := &units[k]
				if err := u.data.Read(&u.Unit, &w.contents); err != nil {
					b.problem(err)
					if errors.Is(err, object.ErrChanged) {
						stop(err) // what can't be read is not what is damaged
					}
				}
				if u.object != nil {
					u.object.link(&w.contents)
				}
				if err := b.image.Take(w.cost(), "a symbol map of so many functions, calls and rows"); err != nil {
					stop(err)
				}
				w.convert(uint32(k))
				if now := done.Add(int64(u.Size)); b.opts.Progress != nil {
					b.opts.Progress(now, total)
				}
			}
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("symbols: %s: %w", b.image.Name(), context.Cause(ctx))
	}
	return workers, nil
}

// sourceUnit is a unit with where it is.
type sourceUnit struct {
	dwarf.Unit
	data   *dwarf.Data
	object *linkedObject // nil but for those of a debug map
}

// units lists all units, and says how many bytes of DWARF they are.
func (b *builder) units() (list []sourceUnit, total int64) {
	add := func(data *dwarf.Data, o *linkedObject) {
		for _, u := range data.Units() {
			list = append(list, sourceUnit{u, data, o})
			total += int64(u.Size)
		}
	}
	if b.data != nil {
		add(b.data, nil)
	}
	for _, o := range b.linked {
		add(o.data, o)
	}
	return list, total
}

func (b *builder) newWorker() *worker {
	w := &worker{symbols: b.table, regions: b.code}
	w.files.number(sourceFile{}) // number 0 is no file
	w.callees.add(callee{})      // some callee, to compare the first function with
	return w
}
