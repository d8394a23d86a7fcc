package symbols

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/callreel/callreel/object"
)

// seenFolder is where a store notes the contents of files.
const seenFolder = "seen"

// getFor opens the map of an image that is at hand: the one that was made of this very
// content, or that which was put for the ID if the image's code lies where it says.
func (s *Store) getFor(im *object.Image) (*Map, error) {
	id := im.ID()
	var own error
	if key := s.contentOf(im); key != "" {
		m, err := s.get(id, key)
		if err == nil {
			return m, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			own = err
		}
	}
	m, err := s.Get(id)
	if err != nil {
		return nil, errors.Join(own, err)
	}
	if !m.fits(layoutOf(im)) {
		err := fmt.Errorf("symbols: %s: %w: %s has its ID, but its code lies elsewhere", m.Name(), ErrNotMap, im.Name())
		return nil, errors.Join(own, err, m.Close())
	}
	return m, nil
}

// getAt opens the map of an image whose file is not there any more: the one that was made
// of the file at that path when that had the ID, or that which was put for the ID.
func (s *Store) getAt(id, path string) (*Map, error) {
	if abs, err := filepath.Abs(path); err == nil && path != "" {
		if m, err := s.get(id, pathKey(abs)); err == nil {
			return m, nil
		}
	}
	return s.Get(id)
}

// putFor stores the map that was made of an image and its companions, for that image only.
// It is the caller's to see to it that only root and the user can have written these.
func (s *Store) putFor(im *object.Image, m *Map) error {
	key := s.contentOf(im)
	if key == "" {
		return fmt.Errorf("symbols: store: %s is not this user's", im.Name())
	}
	keys := []contentKey{key}
	if path, err := filepath.Abs(im.Name()); err == nil {
		keys = append(keys, pathKey(path))
	}
	return s.put(im.ID(), keys, func(w io.Writer) error {
		_, err := m.WriteTo(w)
		return err
	})
}

// contentOf returns the key of an image's content, "" for one that others can write. A file
// that has not changed since it was read is not read again: 600 MB take half a second.
func (s *Store) contentOf(im *object.Image) contentKey {
	if !trustedImage(im) {
		return ""
	}
	// A part of a fat file is not all of it.
	whole := int64(im.Size()) == im.FileInfo().Size()
	file := ""
	if whole {
		file = fileKey(im.FileInfo())
	}
	if file != "" {
		if key, err := s.seen(file); err == nil {
			return key
		}
	}
	key := keyOf(im)
	if file != "" && key != "" {
		_ = s.note(file, key) // it is read again then
	}
	return key
}

// seen returns the content that a file is known to have.
func (s *Store) seen(file string) (contentKey, error) {
	const size = 32
	f, err := os.Open(filepath.Join(s.dir, seenFolder, file))
	if err != nil {
		return "", err
	}
	defer f.Close() // only read from
	data, err := io.ReadAll(io.LimitReader(f, size+1))
	if err != nil {
		return "", err
	}
	for _, c := range data {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return "", ErrNotMap
		}
	}
	if len(data) != size {
		return "", ErrNotMap
	}
	return contentKey(data), nil
}

// note notes the content of a file.
func (s *Store) note(file string, key contentKey) error {
	folder, err := openFolder(s.dir, seenFolder, s.mode)
	if err != nil {
		return err
	}
	temp, err := folder.write(func(w io.Writer) error {
		_, err := io.WriteString(w, string(key))
		return err
	})
	if err == nil {
		err = folder.Rename(temp, file)
	}
	return errors.Join(err, folder.Close())
}
