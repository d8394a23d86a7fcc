package symbols

import (
	"bufio"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/callreel/callreel/internal/outfile"
)

// A storeFolder is a folder of a store that is written to. No link leads out of the store,
// and nothing is opened for writing that was there before.
type storeFolder struct {
	*os.Root
	mode fs.FileMode // of files
}

// openFolder opens a folder of the store, which is made if it is not there.
//
// Files in it get the mode, 0600 where that is 0.
func openFolder(store, name string, mode fs.FileMode) (*storeFolder, error) {
	root, err := os.OpenRoot(store)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	switch err := root.Mkdir(name, outfile.PrivateFolder); {
	case err == nil && mode != 0:
		err = root.Chmod(name, outfile.FolderMode(mode)) // whatever the umask
		if err != nil {
			return nil, err
		}
	case err != nil && !errors.Is(err, fs.ErrExist):
		return nil, err
	}
	folder, err := root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if mode == 0 {
		mode = 0o600
	}
	return &storeFolder{folder, mode}, nil
}

// write writes a new file under a name that nobody uses, and returns the name.
func (f *storeFolder) write(write func(io.Writer) error) (name string, err error) {
	name = "." + rand.Text() + ".tmp"
	file, err := f.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.mode)
	if err != nil {
		return "", err
	}
	out := bufio.NewWriter(file)
	if err = write(out); err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = file.Chmod(f.mode) // whatever the umask
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(err, f.Remove(name))
	}
	return name, nil
}

// link gives a file another name, in place of one that has it. Where the file system has no
// links it is copied.
func (f *storeFolder) link(from, to string) error {
	temp := "." + rand.Text() + ".tmp"
	if err := f.Link(from, temp); err != nil {
		var copyErr error
		if temp, copyErr = f.copy(from); copyErr != nil {
			return errors.Join(err, copyErr)
		}
	}
	if err := f.Rename(temp, to); err != nil {
		return errors.Join(err, f.Remove(temp))
	}
	// Renaming a file over another of its own names does nothing (rename(2)).
	if err := f.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// copy makes a copy of a file under a name that nobody uses.
func (f *storeFolder) copy(from string) (name string, err error) {
	file, err := f.Open(from)
	if err != nil {
		return "", err
	}
	defer file.Close() // only read from
	return f.write(func(w io.Writer) error {
		_, err := io.Copy(w, file)
		return err
	})
}
