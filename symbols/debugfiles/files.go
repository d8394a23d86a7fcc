package debugfiles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/object/pclntab"
	"github.com/callreel/callreel/symbols"
)

// Fetcher fetches files and keeps them, as debuginfod.Client does.
type Fetcher interface {
	symbols.Fetcher
	// Cached returns the path of a file that was fetched before. The error wraps fs.ErrNotExist if it wasn't.
	Cached(id, kind string) (path string, err error)
}

// Files finds debug files. Only Fetch asks the fetcher for files that aren't here yet, so that who must not wait in
// between lets it fetch all before. The zero value looks beside images and in the system's folder. It may be used by
// several goroutines at once; its fields must not change then.
type Files struct {
	// Dirs are searched before the system's folder, see object.DebugSearch.
	Dirs []string
	// Store has maps that were made before; nil for none.
	Store *symbols.Store
	// Fetcher fetches debug files; nil for none.
	Fetcher Fetcher
	// Fetching, if set, is told of each image of which something is about to be fetched.
	Fetching func(im *object.Image)
	// Failed, if set, is told of the first fetch that has failed, other than by there being no such file.
	Failed func(err error)

	failed sync.Once
}

// Lacks says whether Fetch would ask the fetcher.
func (f *Files) Lacks(im *object.Image, types bool) bool {
	if !f.isWanted(im, types) {
		return false
	}
	if im.Section(".debug_info") != nil {
		return f.lacksAlt(im)
	}
	debug, err := f.Debug(im)
	if err != nil {
		return types || !f.isStored(im)
	}
	defer debug.Close() // only looked at
	return types && (debug.Section(".debug_info") == nil || f.lacksAlt(debug))
}

// isWanted says whether an image may lack what is wanted of it.
func (f *Files) isWanted(im *object.Image, types bool) bool {
	if f.Fetcher == nil || im.ID() == "" || im.Format != object.ELF {
		return false
	}
	return types || im.Section(".debug_info") == nil && im.Section(".symtab") == nil && pclntab.Section(im) == nil
}

// Fetch fetches what an image of an ELF file lacks, if that is not on this machine: its debug file if it has no symbol
// table, or has no debug information and types says that it is wanted; and of that the part that dwz has put elsewhere.
// That it can't be had is no error: Debug says so.
func (f *Files) Fetch(ctx context.Context, im *object.Image, types bool) {
	if !f.isWanted(im, types) {
		return
	}
	if im.Section(".debug_info") != nil {
		f.fetchAlt(ctx, im)
		return
	}
	debug, err := f.Debug(im)
	switch {
	case err != nil && !types && f.isStored(im):
		return
	case err == nil && types && debug.Section(".debug_info") == nil:
		_ = debug.Close() // only looked at
		fallthrough
	case err != nil:
		if debug, err = f.fetchDebug(ctx, im); err != nil {
			return
		}
	}
	defer debug.Close() // only looked at
	if types {
		f.fetchAlt(ctx, debug)
	}
}

// kinds are those of files that may have what an image lacks, the best first.
func kinds() []string { return []string{symbols.FetchDebugInfo, symbols.FetchExecutable} }

// fetchDebug fetches an image's debug file and opens it.
func (f *Files) fetchDebug(ctx context.Context, im *object.Image) (*object.Image, error) {
	if f.Fetching != nil {
		f.Fetching(im)
	}
	for _, kind := range kinds() {
		path, err := f.fetch(ctx, im.ID(), kind)
		if err != nil {
			continue
		}
		if debug, err := openFor(im, path); err == nil {
			return debug, nil
		}
	}
	return nil, object.ErrNoDebug
}

// fetch fetches a file.
func (f *Files) fetch(ctx context.Context, id, kind string) (string, error) {
	path, err := f.Fetcher.Fetch(ctx, id, kind)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil && f.Failed != nil {
		f.failed.Do(func() { f.Failed(err) })
	}
	return path, err
}

// lacksAlt says whether .gnu_debugaltlink of a debug file names a file that isn't on this machine.
func (f *Files) lacksAlt(debug *object.Image) bool {
	if _, _, ok := debug.GnuDebugAltLink(); !ok {
		return false
	}
	alt, err := f.Alt(debug)
	if err == nil {
		_ = alt.Close() // only looked for
	}
	return err != nil
}

// fetchAlt fetches the file that .gnu_debugaltlink of a debug file names, if it does and that isn't on this machine.
func (f *Files) fetchAlt(ctx context.Context, debug *object.Image) {
	if _, id, _ := debug.GnuDebugAltLink(); f.lacksAlt(debug) {
		_, _ = f.fetch(ctx, fmt.Sprintf("%x", id), symbols.FetchDebugInfo) // Alt finds it, or doesn't
	}
}

// openFor opens a file that may be an image's debug file: one of its ID whose code lies where the image's does, and that
// has symbols or debug information.
func openFor(im *object.Image, path string) (*object.Image, error) {
	debug, err := object.Opener{Memory: im.Allowance()}.OpenID(path, im.ID())
	if err != nil {
		return nil, err
	}
	err = im.CheckLayout(debug)
	if err == nil && debug.Section(".debug_info") == nil && debug.Section(".symtab") == nil {
		err = fmt.Errorf("%s: %w: it is stripped", path, object.ErrNoDebug)
	}
	if err != nil {
		return nil, errors.Join(err, debug.Close())
	}
	return debug, nil
}

// Debug opens the debug file of an image, which the caller closes: by object.DebugSearch, or among what was fetched. The
// error wraps object.ErrNoDebug if there is none. Nobody is asked.
func (f *Files) Debug(im *object.Image) (*object.Image, error) {
	debug, err := (&object.DebugSearch{Dirs: f.Dirs}).Debug(im)
	if err == nil && debug.Section(".debug_info") != nil || f.Fetcher == nil || im.ID() == "" {
		return debug, err
	}
	for _, kind := range kinds() {
		path, cachedErr := f.Fetcher.Cached(im.ID(), kind)
		if cachedErr != nil {
			continue
		}
		fetched, openErr := openFor(im, path)
		switch {
		case openErr != nil:
		case err != nil:
			return fetched, nil
		case fetched.Section(".debug_info") != nil:
			_ = debug.Close() // has less
			return fetched, nil
		default:
			_ = fetched.Close() // has no more
		}
	}
	return debug, err
}

// Alt opens the file that .gnu_debugaltlink of a debug file names, as object.DebugSearch does, or among what was fetched.
// Nobody is asked.
func (f *Files) Alt(debug *object.Image) (*object.Image, error) {
	alt, err := (&object.DebugSearch{Dirs: f.Dirs}).Alt(debug)
	if err == nil || f.Fetcher == nil {
		return alt, err
	}
	_, raw, _ := debug.GnuDebugAltLink()
	id := fmt.Sprintf("%x", raw)
	path, cachedErr := f.Fetcher.Cached(id, symbols.FetchDebugInfo)
	if id == "" || cachedErr != nil {
		return nil, err
	}
	return object.Opener{Memory: debug.Allowance()}.OpenID(path, id)
}

func (f *Files) isStored(im *object.Image) bool {
	name, done := f.Names(im)
	defer done()
	return name != nil
}

// Names returns what tells, by the map of the store, the name of the function that begins at a link address of an image,
// "" if it has none. It is nil if there is no map. done must be called at the end.
func (f *Files) Names(im *object.Image) (name func(addr uint64) string, done func()) {
	if f.Store == nil || im.ID() == "" {
		return nil, func() {}
	}
	m, err := (&symbols.Finder{Store: f.Store}).StoredFor(im)
	if err != nil {
		return nil, func() {}
	}
	var frames []symbols.Frame
	name = func(addr uint64) string {
		if best, ok := m.Choice(addr); ok {
			return strings.Clone(best) // not from the map, which is closed
		}
		if frames, _ = m.Lookup(addr, frames[:0]); len(frames) == 0 {
			return ""
		}
		last := &frames[len(frames)-1]
		if last.FunctionStart != addr {
			return ""
		}
		plain, _, _ := strings.Cut(last.Linkage, "@") // without the version
		return strings.Clone(plain)
	}
	return name, func() { _ = m.Close() } // only read from
}
