package symbols

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// A Store is a folder of symbol maps by the images' IDs: DIR/ab/cdef….symmap for the
// ID abcdef…. Several processes may use one at once: a map appears in it whole or not
// at all.
type Store struct{ dir string }

// OpenStore opens the store in a folder, which is made when it is not there.
func OpenStore(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("symbols: store: %w", err)
	}
	return &Store{dir}, nil
}

// Dir is the store's folder.
func (s *Store) Dir() string { return s.dir }

// Path is where the map of an ID is or would be. The ID is a build ID or UUID in
// lower-case hexadecimal, of two bytes at least; anything else, which would lead out
// of the store, is an error.
func (s *Store) Path(id string) (string, error) {
	raw, err := hex.DecodeString(id)
	if err != nil || len(raw) < 2 || len(id) > maxIDSize || id != hex.EncodeToString(raw) {
		return "", fmt.Errorf("symbols: store %s: %.80q is no image ID in lower-case hexadecimal", s.dir, id)
	}
	return filepath.Join(s.dir, id[:2], id[2:]+Extension), nil
}

// Has says whether there is a map of the ID that can be opened.
func (s *Store) Has(id string) bool {
	m, err := s.Get(id)
	if err != nil {
		return false
	}
	return m.Close() == nil
}

// Get opens the map of an ID. The error wraps fs.ErrNotExist when the store has none,
// and ErrNotMap when what it has cannot be used: damaged, of another version, or the
// map of another image.
func (s *Store) Get(id string) (*Map, error) {
	path, err := s.Path(id)
	if err != nil {
		return nil, err
	}
	m, err := Open(path)
	if err != nil {
		return nil, err
	}
	if m.ID() != id {
		err := fmt.Errorf("symbols: %s: %w: it is of ID %q", path, ErrNotMap, m.ID())
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// Put stores the map that write writes as that of an ID, in place of one that is
// there. When write fails, or what it wrote is no map of that ID, nothing is changed.
func (s *Store) Put(id string, write func(io.Writer) error) (err error) {
	path, err := s.Path(id)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("symbols: store: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".*.tmp")
	if err != nil {
		return fmt.Errorf("symbols: store: %w", err)
	}
	temp := f.Name()
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temp))
		}
	}()
	out := bufio.NewWriter(f)
	err = write(out)
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = f.Chmod(0o644) // temporary files are for their owner alone
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := checkID(temp, id); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return fmt.Errorf("symbols: store: %w", err)
	}
	return nil
}

// checkID says whether a file is a map of an ID.
func checkID(path, id string) error {
	m, err := Open(path)
	if err != nil {
		return err
	}
	if m.ID() != id {
		err = fmt.Errorf("symbols: store: a map of ID %q is not one of %q", m.ID(), id)
	}
	return errors.Join(err, m.Close())
}

// Remove takes the map of an ID out of the store. That it has none is no error.
func (s *Store) Remove(id string) error {
	path, err := s.Path(id)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("symbols: store: %w", err)
	}
	return nil
}
