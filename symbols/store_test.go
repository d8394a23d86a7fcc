package symbols

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// put stores a map of the ID 0123.
func put(t testing.TB, s *Store, data []byte) error {
	t.Helper()
	return s.Put("0123", func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

func newStore(t testing.TB) *Store {
	t.Helper()
	s, err := OpenStore(filepath.Join(t.TempDir(), "deep", "store"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// files lists what is below a folder.
func files(t testing.TB, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestStoredMapIsFoundByID(t *testing.T) {
	s := newStore(t)
	if _, err := s.Get("0123"); !errors.Is(err, fs.ErrNotExist) || s.Has("0123") {
		t.Fatalf("an empty store: %v", err)
	}
	if err := put(t, s, sample(t)); err != nil {
		t.Fatal(err)
	}
	if got, want := files(t, s.Dir()), filepath.Join(s.Dir(), "01", "23.symmap"); len(got) != 1 || got[0] != want {
		t.Errorf("the store holds %q, want %q", got, want)
	}
	m, err := s.Get("0123")
	if err != nil || !s.Has("0123") {
		t.Fatal(err)
	}
	if exercise(t, m) == 0 {
		t.Error("the map answers nothing")
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if _, reason := m.Lookup(0x1000, nil); reason == Found {
		t.Error("a closed map answers")
	}
	if err := errors.Join(m.Close(), s.Remove("0123"), s.Remove("0123")); err != nil {
		t.Error(err)
	}
}

func TestFailedPutLeavesTheStoreAsItWas(t *testing.T) {
	s := newStore(t)
	good := sample(t)
	if err := put(t, s, good); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	for what, write := range map[string]func(io.Writer) error{
		"error after half": func(w io.Writer) error { w.Write(good[:len(good)/2]); return broken },
		"half without one": func(w io.Writer) error { _, err := w.Write(good[:len(good)/2]); return err },
		"nothing":          func(io.Writer) error { return nil },
	} {
		if err := s.Put("0123", write); err == nil {
			t.Errorf("%s: no error", what)
		}
		if got := files(t, s.Dir()); len(got) != 1 || !s.Has("0123") {
			t.Errorf("%s: the store holds %q", what, got)
		}
	}
	if err := s.Put("4567", func(w io.Writer) error { _, err := w.Write(good); return err }); err == nil {
		t.Error("a map of another ID was stored")
	}
}

func TestStoreRefusesWhatIsNoID(t *testing.T) {
	s := newStore(t)
	for _, id := range []string{"", "0", "01", "012", "../../x", "ABCD", "01/23", "0123 ", string(make([]byte, 600))} {
		if _, err := s.Path(id); err == nil {
			t.Errorf("%q has a path", id)
		}
		if _, err := s.Get(id); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Get(%q): %v", id, err)
		}
	}
}

func TestMapOfAnotherImageInTheStoreIsRefused(t *testing.T) {
	s := newStore(t)
	path, err := s.Path("4567")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, sample(t), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get("4567"); !errors.Is(err, ErrNotMap) {
		t.Errorf("got %v", err)
	}
}

func TestSeveralWritersAndReadersOfOneID(t *testing.T) {
	s := newStore(t)
	data := sample(t)
	if err := put(t, s, data); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 20 {
				if err := put(t, s, data); err != nil {
					t.Error(err)
				}
			}
		})
		group.Go(func() {
			for range 20 {
				m, err := s.Get("0123")
				if err != nil {
					t.Error(err)
					continue
				}
				exercise(t, m)
				if err := m.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if got := files(t, s.Dir()); len(got) != 1 {
		t.Errorf("the store holds %q", got)
	}
}

func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	for _, path := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none"), os.DevNull} {
		if _, err := Open(path); err == nil {
			t.Errorf("%s was opened", path)
		}
	}
	path := filepath.Join(t.TempDir(), "empty")
	write(t, path, "")
	if _, err := Open(path); !errors.Is(err, ErrNotMap) {
		t.Errorf("an empty file: %v", err)
	}
}
