//go:build !linux

package outfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// handle is a folder by its path: only Linux, where processes are recorded, has what it takes to do without.
type handle struct{ at string }

// OpenFolder opens a folder.
func OpenFolder(path string) (*Folder, error) {
	fi, err := os.Stat(path)
	if err == nil && !fi.IsDir() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("not a directory")}
	}
	if err != nil {
		return nil, err
	}
	return &Folder{path, handle{path}}, nil
}

// Close does nothing.
func (o *handle) Close() error { return nil }

func (o *handle) in(name string) string { return filepath.Join(o.at, name) }

func (o *handle) stat() (fs.FileInfo, error) { return os.Stat(o.at) }

func (o *handle) lstat(name string) (fs.FileInfo, error) { return os.Lstat(o.in(name)) }

func (o *handle) writable() error { return nil } // making the file tells

func (o *handle) mkdir(name string, mode fs.FileMode) error { return os.Mkdir(o.in(name), mode) }

func (o *handle) chmod(mode fs.FileMode) error { return os.Chmod(o.at, mode) }

func (o *handle) create(name, _ string, mode fs.FileMode) (*os.File, error) {
	return os.OpenFile(o.in(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
}

func (o *handle) read(name string) (*os.File, error) { return os.Open(o.in(name)) }

func (o *handle) canInto(name string) error {
	fi, err := os.Stat(o.in(name))
	if err == nil && (fi.IsDir() || fi.Mode().IsRegular()) {
		err = fs.ErrExist
	}
	return err
}

func (o *handle) openInto(name string) (*os.File, error) {
	return os.OpenFile(o.in(name), os.O_WRONLY, 0)
}

func (o *handle) remove(name string) error { return os.Remove(o.in(name)) }

func (o *handle) replace(old, name string) error { return os.Rename(o.in(old), o.in(name)) }

func (o *handle) replaceIf(old, name string, was fs.FileInfo) error {
	fi, err := o.lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return o.rename(old, name)
	case err != nil:
		return err
	case !os.SameFile(fi, was):
		return fs.ErrExist
	}
	return o.replace(old, name)
}

// rename gives a file a name that nobody has.
func (o *handle) rename(old, name string) error {
	err := os.Link(o.in(old), o.in(name))
	switch {
	case err == nil:
		return o.remove(old)
	case errors.Is(err, fs.ErrExist):
		return err
	}
	f, err := o.create(name, name, Private) // a file system without links
	if err == nil {
		err = errors.Join(f.Close(), o.replace(old, name))
	}
	return err
}

// Names lists what is in the folder.
func (d *Folder) Names() ([]string, error) {
	entries, err := os.ReadDir(d.at)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}
