package object

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// openQuietly opens a file for reading if it is a regular one. A file that is only
// located (O_PATH) is looked at before it is opened, so whoever may change what the
// path leads to gains nothing by it.
func openQuietly(path string) (*os.File, error) {
	at, err := retry(func() (int, error) { return unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	located := os.NewFile(uintptr(at), path)
	defer located.Close()
	info, err := located.Stat()
	if err == nil {
		err = wantRegular(path, info)
	}
	if err != nil {
		return nil, err
	}
	fd, err := retry(func() (int, error) {
		return unix.Open("/proc/self/fd/"+strconv.Itoa(at), unix.O_RDONLY|unix.O_CLOEXEC|openNonblock, 0)
	})
	if errors.Is(err, unix.ENOENT) { // no /proc here
		return openAsked(path)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

func retry(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
