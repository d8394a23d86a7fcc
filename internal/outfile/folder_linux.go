package outfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// handle is a folder as an O_PATH descriptor.
type handle struct{ file *os.File }

// Close closes the folder. It may be closed twice.
func (o *handle) Close() error {
	if err := o.file.Close(); !errors.Is(err, fs.ErrClosed) {
		return err
	}
	return nil
}

func (o *handle) fd() int { return int(o.file.Fd()) }

// failed makes an error of one that a system call has returned.
func (o *handle) failed(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: filepath.Join(o.file.Name(), name), Err: err}
}

// openat opens what has a name in the folder.
func (o *handle) openat(name string, flags int, mode fs.FileMode) (*os.File, error) {
	for {
		fd, err := unix.Openat(o.fd(), name, flags|unix.O_CLOEXEC, uint32(mode))
		switch err {
		case nil:
			return os.NewFile(uintptr(fd), filepath.Join(o.file.Name(), name)), nil
		case unix.EINTR:
		default:
			return nil, o.failed("open", name, err)
		}
	}
}

// node opens what has a name, a link itself, as O_PATH, which does nothing to it.
func (o *handle) node(name string) (*os.File, fs.FileInfo, error) {
	f, err := o.openat(name, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, nil, err
	}
	fi, err := f.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, fi, nil
}

func (o *handle) stat() (fs.FileInfo, error) { return o.file.Stat() }

func (o *handle) lstat(name string) (fs.FileInfo, error) {
	f, fi, err := o.node(name)
	if err != nil {
		return nil, err
	}
	return fi, f.Close()
}

// writable says why nothing can be made in the folder.
func (o *handle) writable() error {
	return o.failed("write in", "", unix.Faccessat(o.fd(), ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS))
}

func (o *handle) mkdir(name string, mode fs.FileMode) error {
	return o.failed("mkdir", name, unix.Mkdirat(o.fd(), name, uint32(mode)))
}

// chmod changes the folder's own mode.
func (o *handle) chmod(mode fs.FileMode) error {
	dir, err := o.openat(".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	return errors.Join(dir.Chmod(mode), dir.Close())
}

// create makes a file, which errors call by the name that is shown.
func (o *handle) create(name, shown string, mode fs.FileMode) (*os.File, error) {
	for {
		fd, err := unix.Openat(o.fd(), name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(mode))
		switch err {
		case nil:
			return os.NewFile(uintptr(fd), shown), nil
		case unix.EINTR:
		default:
			return nil, &fs.PathError{Op: "create", Path: shown, Err: err}
		}
	}
}

// read opens a file for reading. What isn't one isn't opened: that alone may do something to a device.
func (o *handle) read(name string) (*os.File, error) {
	node, fi, err := o.node(name)
	if err != nil {
		return nil, err
	}
	defer node.Close()
	if !fi.Mode().IsRegular() {
		return nil, o.failed("open", name, unix.EINVAL)
	}
	return reopen(node, os.O_RDONLY)
}

// reopen opens the very file that a descriptor is of, whatever becomes of its name.
func reopen(node *os.File, flags int) (*os.File, error) {
	for {
		fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(int(node.Fd())), flags|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
		switch err {
		case nil:
			return os.NewFile(uintptr(fd), node.Name()), nil
		case unix.EINTR:
		default:
			return nil, &fs.PathError{Op: "open", Path: node.Name(), Err: err}
		}
	}
}

func (o *handle) remove(name string) error {
	return o.failed("remove", name, unix.Unlinkat(o.fd(), name, 0))
}

// replace gives a file a name that another has, and loses by that.
func (o *handle) replace(old, name string) error {
	return o.failed("rename", name, unix.Renameat(o.fd(), old, o.fd(), name))
}

// rename gives a file a name that nobody has.
func (o *handle) rename(old, name string) error {
	err := unix.Renameat2(o.fd(), old, o.fd(), name, unix.RENAME_NOREPLACE)
	if !unknown(err) {
		return o.failed("rename", name, err)
	}
	return o.renameByLink(old, name)
}

// renameByLink is rename where the file system doesn't know RENAME_NOREPLACE.
func (o *handle) renameByLink(old, name string) error {
	err := unix.Linkat(o.fd(), old, o.fd(), name, 0)
	switch {
	case err == nil:
		return o.remove(old)
	case !unknown(err) && err != unix.EPERM && err != unix.EMLINK:
		return o.failed("link", name, err)
	}
	f, err := o.create(name, name, Private) // nor links: the name is taken by an empty file, which is ours to replace
	if err == nil {
		err = errors.Join(f.Close(), o.replace(old, name))
	}
	return err
}

// unknown says whether an error means that a file system can't do something.
func unknown(err error) bool {
	return err == unix.EINVAL || err == unix.ENOSYS || err == unix.EOPNOTSUPP
}

// replaceIf is replace if a certain file has the name, and rename if none has.
func (o *handle) replaceIf(old, name string, was fs.FileInfo) error {
	err := unix.Renameat2(o.fd(), old, o.fd(), name, unix.RENAME_EXCHANGE)
	switch {
	case err == unix.ENOENT:
		return o.rename(old, name)
	case unknown(err):
		if fi, err := o.lstat(name); err != nil || !os.SameFile(fi, was) {
			return errors.Join(fs.ErrExist, err)
		}
		return o.replace(old, name)
	case err != nil:
		return o.failed("rename", name, err)
	}
	// Looked at after both have changed places, since somebody else may do the same.
	if fi, err := o.lstat(old); err == nil && os.SameFile(fi, was) {
		return o.remove(old)
	}
	return errors.Join(fs.ErrExist, o.failed("rename", name, unix.Renameat2(o.fd(), old, o.fd(), name, unix.RENAME_EXCHANGE)))
}

// Names lists what is in the folder.
func (d *Folder) Names() ([]string, error) {
	dir, err := d.openat(".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	return names, errors.Join(err, dir.Close())
}
