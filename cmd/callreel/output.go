package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// writeOutput makes the file at path from what write writes. A file that is there is replaced only with force, and only
// once all is written; after a failure no new file is left. What isn't a regular file (a pipe, a device) is written to.
func writeOutput(path string, force bool, write func(io.Writer) error) error {
	old, err := os.Lstat(path)
	if err == nil && old.Mode()&fs.ModeSymlink != 0 {
		if old, err = os.Stat(path); err == nil {
			path, err = filepath.EvalSymlinks(path) // replace what the link leads to, not the link
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return createOutput(path, write)
	case err != nil:
		return fmt.Errorf("callreel: %w", err)
	case old.IsDir():
		return usageError("callreel: %s: is a directory; give -o a file", path)
	case !old.Mode().IsRegular():
		return writeInto(path, write)
	case !force:
		return usageError("callreel: %s: %w; --force replaces it", path, fs.ErrExist)
	}
	return replaceOutput(path, old.Mode().Perm(), write)
}

// createOutput makes a file that was not there.
func createOutput(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("callreel: %w", err)
	}
	err = write(f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// replaceOutput puts a file in the place of one that was there.
func replaceOutput(path string, mode fs.FileMode, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("callreel: %w", err)
	}
	err = write(f)
	if err == nil {
		err = f.Chmod(mode)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// writeInto writes to something that is no regular file.
func writeInto(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("callreel: %w", err)
	}
	err = write(f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
