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
// once all is written; after a failure there is no new file. What isn't a regular file (a pipe, a device) is written to.
func writeOutput(path string, force bool, write func(io.Writer) error) (err error) {
	old, err := os.Lstat(path)
	if err == nil && old.Mode()&fs.ModeSymlink != 0 {
		if old, err = os.Stat(path); err == nil {
			path, err = filepath.EvalSymlinks(path) // replace what the link leads to, not the link
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("callreel: %w", err)
	case old.IsDir():
		return usageError("callreel: %s: is a directory; give -o a file", path)
	case !old.Mode().IsRegular():
		return writeInto(path, write)
	case !force:
		return usageError("callreel: %s: %w; --force replaces it", path, fs.ErrExist)
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("callreel: %w", err)
	}
	defer func() {
		if err != nil {
			os.Remove(temporary.Name())
		}
	}()
	err = write(temporary)
	if err == nil {
		err = temporary.Chmod(modeLike(old))
	}
	if cerr := temporary.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if !force {
		// Unlike a renamed file, a linked one never replaces another, one that came meanwhile.
		if err = os.Link(temporary.Name(), path); err == nil {
			return os.Remove(temporary.Name())
		}
		if errors.Is(err, fs.ErrExist) {
			return usageError("callreel: %s: %w; --force replaces it", path, fs.ErrExist)
		}
		// There are file systems without links.
	}
	if err = os.Rename(temporary.Name(), path); err != nil {
		return fmt.Errorf("callreel: %w", err)
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

// modeLike is the mode for a file in the place of old, which may be nil.
func modeLike(old fs.FileInfo) fs.FileMode {
	if old == nil {
		return 0o644
	}
	return old.Mode().Perm()
}
