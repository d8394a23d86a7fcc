package symbols

import (
	"bytes"
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
	// DWARF: others may be made better once the debug file is there. With nil, maps
	// are made in memory.
	Store *Store

	// DebugDirs are searched before the system's folder, see object.DebugSearch.
	DebugDirs []string

	// Fetcher fetches debug information; nil for none.
	Fetcher Fetcher

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
	best   *Map
	tried  []error
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
	m, err := s.Store.Get(s.wanted.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("not in the store %s", s.Store.Dir())
	}
	s.best = m
	return err
}

// file makes the map of the image's own file and its companions.
func (s *finding) file(ctx context.Context) error {
	if s.wanted.Path == "" {
		return nil
	}
	im, err := s.open()
	if err != nil {
		return err
	}
	defer im.Close() // only read from
	if s.wanted.ID == "" {
		s.wanted.ID = im.ID()
		if _ = s.stored(ctx); s.best != nil { // it was not asked before: the ID is known only now
			return nil
		}
	}
	return s.build(ctx, im)
}

// open opens the image's file, if it is the image.
func (s *finding) open() (*object.Image, error) {
	if s.wanted.ID != "" {
		return object.OpenID(s.wanted.Path, s.wanted.ID)
	}
	return object.OpenArch(s.wanted.Path, s.wanted.Arch)
}

// debugDirs makes the map of a debug file that is known by the ID alone.
func (s *finding) debugDirs(ctx context.Context) error {
	if s.wanted.ID == "" {
		return nil
	}
	var errs []error
	for _, path := range debugPaths(s.DebugDirs, s.wanted.ID) {
		im, err := object.OpenID(path, s.wanted.ID)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
			continue
		}
		err = errors.Join(s.build(ctx, im), im.Close())
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
		im, err := object.OpenID(path, s.wanted.ID)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if err := errors.Join(s.build(ctx, im), im.Close()); err != nil {
			errs = append(errs, err)
		} else if s.best != nil && s.best.HasDWARF() {
			return nil
		}
	}
	return errors.Join(errs...)
}

// build makes the map of an image, and keeps it if it is better than the one so far.
func (s *finding) build(ctx context.Context, im *object.Image) error {
	var data bytes.Buffer
	if _, err := Build(ctx, im, &data, BuildOptions{Workers: s.Workers, DebugDirs: s.DebugDirs, Search: true, Progress: s.Progress}); err != nil {
		return err
	}
	m, err := Parse(im.Name(), data.Bytes())
	if err != nil {
		return err
	}
	if s.best != nil && (m.Stripped() || !m.HasDWARF()) {
		return nil
	}
	if s.Store != nil && m.HasDWARF() && m.ID() != "" {
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

// keep puts a map into the store and opens it there.
func (s *finding) keep(m *Map) (*Map, error) {
	err := s.Store.Put(m.ID(), func(w io.Writer) error {
		_, err := m.WriteTo(w)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.Store.Get(m.ID())
}
