package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// writeWhole is writeOutput for files that are of no use before they are whole: a new one, too,
// appears under its name when all is written.
func writeWhole(path string, force bool, write func(io.Writer) error) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return writeOutput(path, force, write)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("callreel: %w", err)
	}
	err = write(f)
	if err == nil {
		err = f.Chmod(0o644) // temporary files are for their owner alone
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		// Unlike renaming, this leaves what somebody else has put there meanwhile.
		switch err = os.Link(f.Name(), path); {
		case errors.Is(err, fs.ErrExist):
			err = usageError("callreel: %s: %w; --force replaces it", path, fs.ErrExist)
		case err != nil: // a file system without links
			return os.Rename(f.Name(), path)
		}
	}
	return errors.Join(err, os.Remove(f.Name()))
}
