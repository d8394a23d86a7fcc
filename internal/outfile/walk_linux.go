package outfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks is how many symbolic links a path may lead through; the kernel has the same (path_resolution(7)).
const maxLinks = 40

// OpenFolder opens a folder. On the way there, and at its end, symbolic links are followed only if they are root's or the user's own:
// people keep their folders on other disks by such links, so that to follow none would be too much. Who owns a link decides, not who owns
// the folder that it is in, because links can't be given away. Whoever else could make the path lead elsewhere is told of by an error that
// wraps [ErrOthers].
func OpenFolder(path string) (*Folder, error) {
	start := "."
	if filepath.IsAbs(path) {
		start = "/"
	}
	fd, err := unix.Open(start, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: start, Err: err}
	}
	w := &walk{at: &handle{os.NewFile(uintptr(fd), start)}, shown: path}
	if err := w.along(path); err != nil {
		return nil, errors.Join(err, w.at.Close())
	}
	// From here on it goes by the name that the user knows.
	dir, err := duplicate(w.at.file, path)
	if err = errors.Join(err, w.at.Close()); err != nil {
		return nil, err
	}
	return &Folder{path, handle{dir}}, nil
}

func duplicate(f *os.File, name string) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// walk is a way through folders.
type walk struct {
	at    *handle
	links int    // that were followed
	shown string // for errors
}

// along goes along a path.
func (w *walk) along(path string) error {
	if filepath.IsAbs(path) {
		root, err := w.at.openat("/", unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			return err
		}
		if err := w.to(root); err != nil {
			return err
		}
	}
	for _, name := range strings.Split(path, "/") {
		if name == "" || name == "." {
			continue
		}
		if err := w.step(name); err != nil {
			return err
		}
	}
	return nil
}

// to goes into an open folder.
func (w *walk) to(dir *os.File) error {
	old := w.at
	w.at = &handle{dir}
	return old.Close()
}

// step goes into a folder, or to where a link leads.
func (w *walk) step(name string) error {
	node, fi, err := w.at.node(name)
	if err != nil {
		return w.failed(err)
	}
	switch {
	case fi.IsDir():
		return w.to(node)
	case fi.Mode()&fs.ModeSymlink == 0:
		return errors.Join(w.failed(unix.ENOTDIR), node.Close())
	}
	magic := isProc(node)
	text, err := readlink(node)
	if err = errors.Join(err, node.Close()); err != nil {
		return err
	}
	if err := w.mayFollow(name, fi); err != nil {
		return err
	}
	if !magic {
		return w.along(text)
	}
	// What the kernel leads to doesn't go by the text.
	dir, err := w.at.openat(name, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return w.failed(err)
	}
	return w.to(dir)
}

// mayFollow says why a link isn't followed.
func (w *walk) mayFollow(name string, fi fs.FileInfo) error {
	if w.links++; w.links > maxLinks {
		return w.failed(unix.ELOOP)
	}
	if uid, _ := owner(fi); !trusted(fi) {
		return fmt.Errorf("%s: %s is a symbolic link, which is not followed: %w (%d); give the path without it", w.shown, name, ErrOthers, uid)
	}
	return nil
}

// failed is an error about the path that was given.
func (w *walk) failed(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return &fs.PathError{Op: "open", Path: w.shown, Err: err}
}

// trusted says whether something is root's or the user's own.
func trusted(fi fs.FileInfo) bool {
	uid, _ := owner(fi)
	return uid == 0 || uid == os.Geteuid()
}

// isProc says whether a file is one of procfs.
func isProc(f *os.File) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(int(f.Fd()), &st) == nil && st.Type == unix.PROC_SUPER_MAGIC
}

// readlink reads a link that is open as O_PATH.
func readlink(f *os.File) (string, error) {
	b := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(f.Fd()), "", b)
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: f.Name(), Err: err}
	}
	return string(b[:n]), nil
}
