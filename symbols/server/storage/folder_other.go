//go:build !linux

package storage

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

func openUnnamed(string) (*os.File, error) { return nil, errors.ErrUnsupported }

func unnamedPath(f *os.File) string { return f.Name() }

// openFile opens what a key names below a folder.
func openFile(root *os.Root, _ *os.File, key string) (*os.File, error) {
	if info, err := root.Stat(key); err != nil { // first, because opening a FIFO would wait for a writer
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fs.ErrNotExist
	}
	return root.Open(key)
}

// linkTemp gives a file its name in a folder, if that is free.
func linkTemp(t *Temp, folder *os.File, name string) error {
	return os.Link(t.Path(), filepath.Join(folder.Name(), name))
}

func writeMeta(*os.File, Meta) error { return errors.ErrUnsupported }

func readMeta(*os.File) Meta { return Meta{} }

// lockFile does nothing: here only the servers of one process know of each other.
func lockFile(*os.File) error { return nil }
