package storage

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// A Temp is a file that is written before it is put. Close forgets it.
type Temp struct {
	*os.File
	name string // its path; "" if it has none
}

// NewTemp makes a Temp in a folder.
func NewTemp(dir string) (*Temp, error) {
	if f, err := openUnnamed(dir); err == nil {
		return &Temp{File: f}, nil
	}
	name := filepath.Join(dir, "."+rand.Text()+tempSuffix)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	return &Temp{f, name}, nil
}

// tempSuffix ends the names of files that aren't whole yet; they begin with a dot.
const tempSuffix = ".tmp"

// Path is where the file can be opened while the Temp is open.
func (t *Temp) Path() string {
	if t.name != "" {
		return t.name
	}
	return unnamedPath(t.File)
}

// Size is how much has been written.
func (t *Temp) Size() (int64, error) {
	info, err := t.Stat()
	if err != nil {
		return 0, fmt.Errorf("storage: %w", err)
	}
	return info.Size(), nil
}

// Close closes the file and removes its name.
func (t *Temp) Close() error {
	err := t.File.Close()
	if t.name != "" {
		if failed := os.Remove(t.name); !errors.Is(failed, os.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}
	return err
}
