package storage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// openUnnamed makes a file without a name, of which nothing is left if this process is killed (open(2), O_TMPFILE).
func openUnnamed(dir string) (*os.File, error) {
	return os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE, 0o600)
}

func unnamedPath(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// openFile opens what a key names below a folder, without waiting for the writer of a FIFO. openat2(2) does in one call what os.Root
// needs five for; it came with Linux 5.6, and containers may forbid it.
func openFile(root *os.Root, folder *os.File, key string) (*os.File, error) {
	fd, err := unix.Openat2(int(folder.Fd()), key, &unix.OpenHow{
		Flags: unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
	})
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, fs.ErrNotExist
	case err != nil:
		return root.OpenFile(key, os.O_RDONLY|unix.O_NONBLOCK, 0)
	}
	// Files are always ready: waiting for that by epoll would be refused.
	_ = unix.SetNonblock(fd, false)
	return os.NewFile(uintptr(fd), key), nil
}

// linkTemp gives a file its name in a folder, if that is free.
func linkTemp(t *Temp, folder *os.File, name string) error {
	err := unix.Linkat(unix.AT_FDCWD, t.Path(), int(folder.Fd()), name, unix.AT_SYMLINK_FOLLOW)
	if err != nil {
		return &os.LinkError{Op: "linkat", Old: t.Path(), New: name, Err: err}
	}
	return nil
}

// metaAttribute is the extended attribute that keeps an object's Meta.
const metaAttribute = "user.callreel"

func writeMeta(f *os.File, m Meta) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := unix.Fsetxattr(int(f.Fd()), metaAttribute, text, 0); err != nil {
		return fmt.Errorf("%s: %w", metaAttribute, err)
	}
	return nil
}

func readMeta(f *os.File) Meta {
	var b [4096]byte
	n, err := unix.Fgetxattr(int(f.Fd()), metaAttribute, b[:])
	var m Meta
	if err != nil || json.Unmarshal(b[:n], &m) != nil {
		return Meta{}
	}
	return m
}

// lockFile waits until no other process has the file locked. The lock ends when it is closed.
func lockFile(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX) }
