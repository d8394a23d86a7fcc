package outfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// canInto says why what has a name can't be written into: it is a file, or a folder, or others could read what is written.
func (o *handle) canInto(name string) error {
	node, _, err := o.endOf(name)
	if err != nil {
		return err
	}
	return node.Close()
}

// openInto opens what has a name, as canInto allows it.
func (o *handle) openInto(name string) (*os.File, error) {
	node, number, err := o.endOf(name)
	if err != nil {
		return nil, err
	}
	defer node.Close()
	if own, err := descriptor(node, number); err == nil {
		return own, nil
	}
	return reopen(node, os.O_WRONLY)
}

// descriptor returns this process's own descriptor, once more, if the number is that of the file: with its offset, unlike another
// opening of the file, so that what the shell's >> has there stays.
func descriptor(node *os.File, number int) (*os.File, error) {
	if number < 0 {
		return nil, fs.ErrInvalid
	}
	fd, err := unix.FcntlInt(uintptr(number), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	own := os.NewFile(uintptr(fd), node.Name())
	a, err1 := own.Stat()
	b, err2 := node.Stat()
	if err := errors.Join(err1, err2); err != nil || !os.SameFile(a, b) {
		return nil, errors.Join(fs.ErrInvalid, err, own.Close())
	}
	return own, nil
}

// endOf opens, as O_PATH, what is to be written into: a pipe, a device, or what a descriptor in /proc is of, whose number it returns then,
// and -1 otherwise. Links are followed as on the way to a folder.
func (o *handle) endOf(name string) (*os.File, int, error) {
	start, err := duplicate(o.file, o.file.Name())
	if err != nil {
		return nil, 0, err
	}
	w := &walk{at: &handle{start}, shown: filepath.Join(o.file.Name(), name)}
	defer func() { _ = w.at.Close() }() // an O_PATH descriptor has nothing to say
	for {
		node, fi, err := w.at.node(name)
		if err != nil {
			return nil, 0, w.failed(err)
		}
		if fi.Mode()&fs.ModeSymlink == 0 {
			if err := mayInto(fi); err != nil {
				return nil, 0, errors.Join(err, node.Close())
			}
			return node, -1, nil
		}
		magic := isProc(node)
		text, err := readlink(node)
		if err = errors.Join(err, node.Close(), w.mayFollow(name, fi)); err != nil {
			return nil, 0, err
		}
		if magic {
			return w.magic(name)
		}
		in, last := filepath.Split(text)
		if last == "" || last == "." || last == ".." {
			return nil, 0, w.failed(ErrFolder)
		}
		if err := w.along(in); err != nil {
			return nil, 0, err
		}
		name = last
	}
}

// magic opens what one of the kernel's own links leads to.
func (w *walk) magic(name string) (*os.File, int, error) {
	node, err := w.at.openat(name, unix.O_PATH, 0)
	if err != nil {
		return nil, 0, w.failed(err)
	}
	if fi, err := node.Stat(); err != nil || fi.IsDir() {
		return nil, 0, errors.Join(w.failed(ErrFolder), err, node.Close())
	}
	number, err := strconv.Atoi(name)
	if err != nil {
		number = -1
	}
	return node, number, nil
}

// mayInto says why something that has a name isn't written into. A device is nothing that just anybody can put there.
func mayInto(fi fs.FileInfo) error {
	uid, _ := owner(fi)
	switch {
	case fi.IsDir():
		return ErrFolder
	case fi.Mode().IsRegular():
		return fs.ErrExist
	case fi.Mode()&fs.ModeDevice == 0 && !trusted(fi):
		return fmt.Errorf("%w (%d), who could read what is written", ErrOthers, uid)
	}
	return nil
}
