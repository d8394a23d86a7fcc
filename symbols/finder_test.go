package symbols

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// splitProgram makes a stripped program and its debug file, and tells the ID and an
// address in walk.
func splitProgram(t *testing.T) (path, debug, id string, addr uint64) {
	t.Helper()
	path = compile(t, realtest.GCC, "calls.c", "-O2", "-g", "-Wl,--build-id")
	m := mapOf(t, path, BuildOptions{})
	m.Functions(func(start, _ uint64, name string) bool {
		if name == "walk" {
			addr = start
		}
		return true
	})
	if m.ID() == "" || addr == 0 {
		t.Fatalf("ID %q, walk at %#x", m.ID(), addr)
	}
	debug = filepath.Join(t.TempDir(), "program.debug")
	objcopy := realtest.Tool(t, realtest.Objcopy)
	run(t, filepath.Dir(path), nil, objcopy, "--only-keep-debug", path, debug)
	run(t, filepath.Dir(path), nil, objcopy, "--strip-all", path)
	return path, debug, m.ID(), addr
}

// answers checks that a search finds a map with lines.
func answers(t *testing.T, f *Finder, w Wanted, addr uint64) {
	t.Helper()
	m, err := f.Find(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	frames, reason := m.Lookup(addr, nil)
	if reason != Found || frames[len(frames)-1].Linkage != "walk" || frames[0].Base != "calls.c" {
		t.Errorf("%#x: %s", addr, show(frames, reason))
	}
}

// folder is a Fetcher over a folder: ID/KIND.
type folder struct {
	dir   string
	asked []string
}

func (f *folder) Fetch(_ context.Context, id, kind string) (string, error) {
	f.asked = append(f.asked, kind)
	path := filepath.Join(f.dir, id, kind)
	_, err := os.Stat(path)
	return path, err
}

func (f *folder) add(t *testing.T, id, kind, from string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(f.dir, id), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(f.dir, id, kind), string(data))
}

func TestFinderTriesStoreThenFilesThenFetcher(t *testing.T) {
	path, debug, id, addr := splitProgram(t)
	dirs := t.TempDir()
	place := filepath.Join(dirs, ".build-id", id[:2], id[2:]+".debug")
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		t.Fatal(err)
	}
	fetcher := &folder{dir: t.TempDir()}
	finder := &Finder{Store: newStore(t), DebugDirs: []string{dirs}, Fetcher: fetcher}

	_, err := finder.Find(t.Context(), Wanted{ID: id, Path: path})
	if !errors.Is(err, ErrNoSymbols) || !strings.Contains(fmt.Sprint(err), "stripped") {
		t.Fatalf("a stripped program alone: %v", err)
	}
	if fmt.Sprint(fetcher.asked) != "[debuginfo executable]" {
		t.Errorf("the fetcher was asked for %v", fetcher.asked)
	}

	fetcher.add(t, id, FetchDebugInfo, debug)
	answers(t, &Finder{Fetcher: fetcher}, Wanted{ID: id}, addr)
	answers(t, &Finder{Fetcher: fetcher}, Wanted{ID: id, Path: path}, addr)

	if err := os.Rename(debug, place); err != nil {
		t.Fatal(err)
	}
	fetcher.asked = nil
	answers(t, finder, Wanted{ID: id, Path: path}, addr)
	if m, err := finder.Stored(Wanted{ID: id, Path: path}); err != nil {
		t.Errorf("the map was not stored: %v", err)
	} else if err := m.Close(); err != nil {
		t.Error(err)
	}
	if err := errors.Join(os.Remove(place), os.Remove(path)); err != nil {
		t.Fatal(err)
	}
	answers(t, finder, Wanted{ID: id, Path: path}, addr)
	if len(fetcher.asked) > 0 {
		t.Errorf("the fetcher was asked for %v", fetcher.asked)
	}
}

func TestFinderKnowsDebugFilesByIDAlone(t *testing.T) {
	_, debug, id, addr := splitProgram(t)
	dirs := t.TempDir()
	place := filepath.Join(dirs, ".build-id", id[:2], id[2:]+".debug")
	if err := errors.Join(os.MkdirAll(filepath.Dir(place), 0o755), os.Rename(debug, place)); err != nil {
		t.Fatal(err)
	}
	answers(t, &Finder{DebugDirs: []string{dirs}}, Wanted{ID: id}, addr)
}

func TestFinderRefusesFilesOfAnotherID(t *testing.T) {
	path := compile(t, realtest.GCC, "calls.c", "-O2", "-g", "-Wl,--build-id")
	fetcher := &folder{dir: t.TempDir()}
	const other = "0123456789abcdef0123456789abcdef01234567"
	fetcher.add(t, other, FetchDebugInfo, path)
	_, err := (&Finder{Fetcher: fetcher}).Find(t.Context(), Wanted{ID: other, Path: path})
	var notFound *NotFoundError
	if !errors.As(err, &notFound) || !strings.Contains(err.Error(), "refused") || !strings.Contains(err.Error(), other) {
		t.Errorf("got %v", err)
	}
}

func TestFinderMakesDamagedStoredMapsAnew(t *testing.T) {
	path := compile(t, realtest.GCC, "calls.c", "-O2", "-g", "-Wl,--build-id")
	m := mapOf(t, path, BuildOptions{})
	s := newStore(t)
	at, err := s.Path(m.ID())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, at, "no map")
	found, err := (&Finder{Store: s}).Find(t.Context(), Wanted{ID: m.ID(), Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	if !found.HasDWARF() {
		t.Error("the map was not made anew")
	}
}

func TestFinderFallsBackOnSymbolTables(t *testing.T) {
	path := compile(t, realtest.GCC, "calls.c", "-O2", "-Wl,--build-id")
	s := newStore(t)
	m, err := (&Finder{Store: s, Fetcher: &folder{dir: t.TempDir()}}).Find(t.Context(), Wanted{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if m.HasDWARF() || !m.HasSymbols() {
		t.Error("not made of symbol tables alone")
	}
	if got := files(t, s.Dir()); len(got) > 0 {
		t.Errorf("stored, although a debug file may still come: %q", got)
	}
}

func TestFinderStopsWithItsContext(t *testing.T) {
	path := compile(t, realtest.GCC, "calls.c", "-O2", "-g")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&Finder{}).Find(ctx, Wanted{Path: path}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := (&Finder{}).Find(t.Context(), Wanted{Path: filepath.Join(t.TempDir(), "none")}); !errors.Is(err, ErrNoSymbols) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
