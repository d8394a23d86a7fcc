package symbols

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/callreel/callreel/object"
)

// ErrNoSymbols is wrapped by the error of a search that found no symbol map and
// nothing to make one of.
var ErrNoSymbols = errors.New("no symbols found")

// A Wanted is what is known of an image whose map is looked for; the ID or the path
// at least.
type Wanted struct {
	ID   string // build ID or UUID in lower-case hexadecimal
	Path string // of the image's file
	Arch string // which part of a fat file to take when there is no ID, as object.OpenArch has it
}

// A Fetcher fetches files of images from elsewhere, as package debuginfod does. The
// kind is FetchDebugInfo or FetchExecutable. The path is of a file that stays. An
// error that wraps fs.ErrNotExist says that there is no such file; others that it
// could not be asked for.
type Fetcher interface {
	Fetch(ctx context.Context, id, kind string) (path string, err error)
}

// The kinds of files that a Fetcher is asked for.
const (
	FetchDebugInfo  = "debuginfo"
	FetchExecutable = "executable"
)

// A Finder finds the symbol map of an image, or makes it. It tries, in this order:
//
//   - the store
//   - the file itself and its companions, see object.DebugSearch
//   - the debug file with the ID in the debug folders
//   - the fetcher: the debug information and, where that has none, the executable
//
// It goes on until it has found DWARF, and falls back on what symbol tables name. The
// zero value knows neither store nor fetcher. A Finder may be used by several
// goroutines at once.
type Finder struct {
	// Store holds the maps that were made before, and gets those that are made with
	// DWARF and all that the image names besides: others may be made better once that is there. A map that is made
	// of a file is stored for that content only, and not at all if the file, or one of
	// its companions, may have been written by another user than this and root: anybody
	// can give a file the ID of libc. What the fetcher gets for an ID alone, and what the
	// debug folders have for it, is stored for the ID. With nil, maps are made in memory.
	Store *Store

	// DebugDirs are searched before the system's folder, see object.DebugSearch.
	DebugDirs []string

	// Fetcher fetches debug information; nil for none.
	Fetcher Fetcher

	// Memory bounds what each file, with its companions, may make us keep of it, in bytes:
	// see object.Allowance. 0 is object.DefaultMemory.
	Memory int64

	// Workers and Progress are those of BuildOptions.
	Workers  int
	Progress func(done, total int64)
}

// A NotFoundError tells what was tried to find an image's symbols.
type NotFoundError struct {
	Wanted Wanted
	Tried  []error // why each attempt failed
}

// Error names the image and the attempts.
func (e *NotFoundError) Error() string {
	text := "symbols: no symbols found"
	if e.Wanted.ID != "" {
		text += " for ID " + e.Wanted.ID
	}
	if e.Wanted.Path != "" {
		text += fmt.Sprintf(" (%s)", e.Wanted.Path)
	}
	for k, err := range e.Tried {
		text += [2]string{": ", "; "}[min(k, 1)] + err.Error()
	}
	return text
}

// Unwrap returns the reasons, ErrNoSymbols among them.
func (e *NotFoundError) Unwrap() []error { return append([]error{ErrNoSymbols}, e.Tried...) }

// Find returns the map of an image, which the caller closes. The error is a
// NotFoundError unless the context ended.
func (f *Finder) Find(ctx context.Context, w Wanted) (*Map, error) {
	s := &finding{Finder: f, wanted: w}
	defer s.closeImage()
	s.open()
	for _, step := range []func(context.Context) error{s.stored, s.file, s.debugDirs, s.fetched} {
		if err := step(ctx); err != nil {
			s.tried = append(s.tried, err)
		}
		if ctx.Err() != nil {
			return nil, errors.Join(fmt.Errorf("symbols: %s: %w", w.text(), context.Cause(ctx)), s.drop())
		}
		if s.best != nil && s.best.HasDWARF() {
			return s.best, nil
		}
	}
	if s.best != nil && !s.best.Stripped() {
		return s.best, nil
	}
	if s.best != nil {
		s.tried = append(s.tried, fmt.Errorf("symbols: %s is stripped", s.best.ImageName()))
	}
	return nil, errors.Join(&NotFoundError{w, s.tried}, s.drop())
}

// Stored returns the map that the store has for an image, which the caller closes. Only
// the image's headers are read. The error wraps fs.ErrNotExist when the store has none.
func (f *Finder) Stored(w Wanted) (*Map, error) {
	s := &finding{Finder: f, wanted: w}
	defer s.closeImage()
	s.open()
	return s.fromStore()
}

// StoredFor is Stored for an image that is open.
func (f *Finder) StoredFor(im *object.Image) (*Map, error) {
	s := &finding{Finder: f, wanted: Wanted{ID: im.ID()}, image: im}
	return s.fromStore()
}

// DebugInfo returns how many bytes of debug information this machine has of an image outside of the store, 0 if it has none.
// The image's own file need not be here.
func (f *Finder) DebugInfo(w Wanted) int64 {
	s := &finding{Finder: f, wanted: w}
	defer s.closeImage()
	s.open()
	size := func(im *object.Image) int64 {
		if info := im.Section(".debug_info"); info != nil {
			return int64(info.FileSize)
		}
		return 0
	}
	if s.image != nil {
		if n := size(s.image); n > 0 {
			return n
		}
		if debug, err := (&object.DebugSearch{Dirs: f.DebugDirs}).Debug(s.image); err == nil {
			defer debug.Close() // only looked at
			if n := size(debug); n > 0 {
				return n
			}
		}
	}
	for _, path := range debugPaths(f.DebugDirs, &s.wanted) {
		if im, err := s.openFor(path); err == nil {
			n := size(im)
			_ = im.Close() // only looked at
			if n > 0 {
				return n
			}
		}
	}
	return 0
}

// text names the image in errors.
func (w *Wanted) text() string {
	if w.Path != "" {
		return w.Path
	}
	return "ID " + w.ID
}

// finding is one search.
type finding struct {
	*Finder
	wanted Wanted
	image  *object.Image // the wanted one's own file, nil if it is not at hand
	failed error         // why it is not
	best   *Map
	tried  []error
}

// open opens the image's file, if it is the image.
func (s *finding) open() {
	w := &s.wanted
	switch {
	case w.Path == "":
	case w.ID != "":
		s.image, s.failed = s.opener().OpenID(w.Path, w.ID)
	default:
		if s.image, s.failed = s.opener().OpenArch(w.Path, w.Arch); s.failed == nil {
			w.ID = s.image.ID()
		}
	}
}

func (s *finding) closeImage() {
	if s.image != nil {
		_ = s.image.Close() // only read from
	}
}

// drop closes what was found.
func (s *finding) drop() error {
	if s.best == nil {
		return nil
	}
	best := s.best
	s.best = nil
	return best.Close()
}

// stored asks the store.
func (s *finding) stored(context.Context) error {
	if s.Store == nil || s.wanted.ID == "" {
		return nil
	}
	m, err := s.fromStore()
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("not in the store %s", s.Store.Dir())
	}
	s.best = m
	return err
}

func (s *finding) fromStore() (*Map, error) {
	switch {
	case s.Store == nil || s.wanted.ID == "":
		return nil, fmt.Errorf("symbols: no store, or no ID: %w", fs.ErrNotExist)
	case s.image != nil:
		return s.Store.getFor(s.image)
	default:
		return s.Store.getAt(s.wanted.ID, s.wanted.Path)
	}
}

// opener opens one file, and what belongs to it.
func (s *finding) opener() object.Opener {
	return object.Opener{Memory: object.NewAllowance(s.Memory)}
}

// file makes the map of the image's own file and its companions.
func (s *finding) file(ctx context.Context) error {
	if s.image == nil {
		return s.failed
	}
	return s.build(ctx, s.image, false)
}

// debugDirs makes the map of a debug file that is known by the ID alone.
func (s *finding) debugDirs(ctx context.Context) error {
	if s.wanted.ID == "" {
		return nil
	}
	var errs []error
	for _, path := range debugPaths(s.DebugDirs, &s.wanted) {
		im, err := s.openFor(path)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
			continue
		}
		err = errors.Join(s.build(ctx, im, false), im.Close())
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	if len(errs) == 0 && s.best == nil {
		return errors.New("no debug file with this ID in the debug folders")
	}
	return errors.Join(errs...)
}

// fetched makes the map of files that the fetcher gets.
func (s *finding) fetched(ctx context.Context) error {
	if s.Fetcher == nil || s.wanted.ID == "" {
		return nil
	}
	var errs []error
	for _, kind := range []string{FetchDebugInfo, FetchExecutable} {
		path, err := s.Fetcher.Fetch(ctx, s.wanted.ID, kind)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		im, err := s.openFor(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if err := errors.Join(s.build(ctx, im, true), im.Close()); err != nil {
			errs = append(errs, err)
		} else if s.best != nil && s.best.HasDWARF() {
			return nil
		}
	}
	return errors.Join(errs...)
}

// fetchAlt fetches the file that dwz has put parts of debug information into.
func (s *finding) fetchAlt(ctx context.Context, id string) (*object.Image, error) {
	path, err := s.Fetcher.Fetch(ctx, id, FetchDebugInfo)
	if err != nil {
		return nil, err
	}
	return s.opener().OpenID(path, id)
}

// openFor opens a file that has the image's ID and, if the image is at hand, describes
// code where that has its own.
func (s *finding) openFor(path string) (*object.Image, error) {
	im, err := s.opener().OpenID(path, s.wanted.ID)
	if err != nil || s.image == nil {
		return im, err
	}
	if err := s.image.CheckLayout(im); err != nil {
		return nil, errors.Join(err, im.Close())
	}
	return im, nil
}

// build makes the map of an image, and keeps it if it is better than the one so far.
func (s *finding) build(ctx context.Context, im *object.Image, fetched bool) error {
	opts := BuildOptions{Workers: s.Workers, DebugDirs: s.DebugDirs, Search: true, Progress: s.Progress, Fetched: fetched}
	if s.Fetcher != nil {
		opts.FetchAlt = s.fetchAlt
	}
	m, stats, err := BuildMap(ctx, im, opts)
	if err != nil {
		return err
	}
	s.tried = append(s.tried, stats.Missing...)
	if s.best != nil && (m.Stripped() || !m.HasDWARF()) {
		return nil
	}
	if s.Store != nil && m.HasDWARF() && len(stats.Missing) == 0 && m.ID() != "" && s.trusts(stats, im) {
		kept, err := s.keep(m)
		if err == nil {
			m = kept
		} else {
			s.tried = append(s.tried, err) // the map in memory answers as well
		}
	}
	err = s.drop()
	s.best = m
	return err
}

// trusts says whether only root and this user can have written the image that is at hand,
// the one that a map was made of, and its companions.
func (s *finding) trusts(stats *BuildStats, im *object.Image) bool {
	return trusted(stats.Sources) && trustedImage(im) && (s.image == nil || trustedImage(s.image))
}

// keep puts a map into the store and opens it there: for the image that is at hand, and
// otherwise, since it was found by the ID alone, for the ID.
func (s *finding) keep(m *Map) (*Map, error) {
	if s.image != nil {
		if err := s.Store.putFor(s.image, m); err != nil {
			return nil, err
		}
		return s.Store.getFor(s.image)
	}
	err := s.Store.Put(m.ID(), func(w io.Writer) error {
		_, err := m.WriteTo(w)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.Store.Get(m.ID())
}
