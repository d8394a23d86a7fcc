package symbols

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/callreel/callreel/internal/outfile"
	"github.com/callreel/callreel/internal/ownfolder"
)

// A Store is a folder of symbol maps. Several processes may use one at once: a map appears
// in it whole or not at all.
//
//	DIR/ab/cdef….symmap       the map of the ID abcdef…, put there for all images of that ID
//	DIR/ab/cdef….KEY.symmap   one that was made of a file on the way: for that content, or
//	                          for that path when the file is no longer there
//	DIR/seen/KEY              the content of a file that is as it was when it was read
//
// Before maps said where code lies, those that were made on the way had the first form too.
// They are taken for none.
type Store struct {
	dir  string
	mode fs.FileMode // of the maps; 0 is 0600
}

// OpenStore opens the store in a folder, which is made when it is not there. What it holds
// is believed: it must be a folder that only those write to who may say what functions are
// called. What is put into it is its owner's alone: it may be of programs that are nobody
// else's business.
func OpenStore(dir string) (*Store, error) { return OpenStoreMode(dir, 0) }

// OpenStoreMode is OpenStore for a store that others use, too: what is put into it
// has the mode, exactly, and folders that are made let in who may read that.
func OpenStoreMode(dir string, mode fs.FileMode) (*Store, error) {
	d, err := outfile.MakeFolders(dir, outfile.FolderMode(mode))
	if err != nil {
		return nil, fmt.Errorf("symbols: store: %w", err)
	}
	return &Store{dir, mode}, d.Close()
}

// OpenOwnStore is OpenStore for a folder that was not named by the user: it must be one
// that no other user can change.
func OpenOwnStore(dir string) (*Store, error) { return OpenOwnStoreMode(dir, 0) }

// OpenOwnStoreMode is OpenStoreMode for such a folder.
func OpenOwnStoreMode(dir string, mode fs.FileMode) (*Store, error) {
	if err := ownfolder.Check(dir); err != nil {
		return nil, fmt.Errorf("symbols: store: %w", err)
	}
	return OpenStoreMode(dir, mode)
}

// Dir is the store's folder.
func (s *Store) Dir() string { return s.dir }

// Path is where the map of an ID is or would be. The ID is a build ID or UUID in
// lower-case hexadecimal, of two bytes at least; anything else, which would lead out
// of the store, is an error.
func (s *Store) Path(id string) (string, error) {
	name, err := s.name(id, "")
	if err != nil {
		return "", err
	}
	return filepath.Join(s.dir, name), nil
}

// name is the place of a map in the store's folder.
func (s *Store) name(id string, key contentKey) (string, error) {
	raw, err := hex.DecodeString(id)
	if err != nil || len(raw) < 2 || len(id) > maxIDSize || id != hex.EncodeToString(raw) {
		return "", fmt.Errorf("symbols: store %s: %.80q is no image ID in lower-case hexadecimal", s.dir, id)
	}
	name := id[2:]
	if key != "" {
		name += "." + string(key)
	}
	return filepath.Join(id[:2], name+Extension), nil
}

// Has says whether there is a map of the ID that can be opened.
func (s *Store) Has(id string) bool {
	m, err := s.Get(id)
	if err != nil {
		return false
	}
	return m.Close() == nil
}

// Get opens the map that was put for an ID. The error wraps fs.ErrNotExist when the store
// has none, and ErrNotMap when what it has cannot be used: damaged, of another version, or
// the map of another image.
func (s *Store) Get(id string) (*Map, error) { return s.get(id, "") }

func (s *Store) get(id string, key contentKey) (*Map, error) {
	name, err := s.name(id, key)
	if err != nil {
		return nil, err
	}
	m, err := Open(filepath.Join(s.dir, name))
	if err != nil {
		return nil, err
	}
	if err := checkStored(m, id); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// checkStored says whether a map is one of an ID, and says where code lies.
func checkStored(m *Map, id string) error {
	if m.ID() != id {
		return fmt.Errorf("symbols: %s: %w: it is of ID %q", m.Name(), ErrNotMap, m.ID())
	}
	if m.head.flags&flagLayout == 0 {
		return fmt.Errorf("symbols: %s: %w: it is of an earlier form, which doesn't say whose code it describes; build it again", m.Name(), ErrNotMap)
	}
	return nil
}

// Put stores the map that write writes as that of an ID, in place of one that is
// there: for all images that have the ID. When write fails, or what it wrote is no map of
// that ID, nothing is changed.
func (s *Store) Put(id string, write func(io.Writer) error) error {
	return s.put(id, []contentKey{""}, write)
}

// put stores a map under several keys.
func (s *Store) put(id string, keys []contentKey, write func(io.Writer) error) (err error) {
	var names []string
	for _, key := range keys {
		name, err := s.name(id, key)
		if err != nil {
			return err
		}
		names = append(names, name)
	}
	folder, err := openFolder(s.dir, id[:2], s.mode)
	if err != nil {
		return fmt.Errorf("symbols: store: %w", err)
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	temp, err := folder.write(write)
	if err != nil {
		return err
	}
	defer func() {
		if temp != "" {
			err = errors.Join(err, folder.Remove(temp))
		}
	}()
	m, err := Open(filepath.Join(s.dir, id[:2], temp))
	if err != nil {
		return err
	}
	if err := errors.Join(checkStored(m, id), m.Close()); err != nil {
		return err
	}
	for _, name := range names[1:] {
		if err := folder.link(temp, filepath.Base(name)); err != nil {
			return fmt.Errorf("symbols: store: %w", err)
		}
	}
	if err := folder.Rename(temp, filepath.Base(names[0])); err != nil {
		return fmt.Errorf("symbols: store: %w", err)
	}
	temp = ""
	return nil
}

// Remove takes the map that was put for an ID out of the store. That it has none is no
// error.
func (s *Store) Remove(id string) error {
	name, err := s.name(id, "")
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return fmt.Errorf("symbols: store: %w", err)
	}
	defer root.Close()
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("symbols: store: %w", err)
	}
	return nil
}
