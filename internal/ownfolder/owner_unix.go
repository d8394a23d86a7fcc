//go:build unix

package ownfolder

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Trusted says whether the content of an open file can only be changed by root and by
// this process's user. nil, of what is no file, is not.
func Trusted(info fs.FileInfo) bool {
	if info == nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && ours(st) && !othersWrite(info)
}

// Owner is the user ID that a file belongs to, -1 where that is not known.
func Owner(info fs.FileInfo) int {
	if info == nil {
		return -1
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

func ours(st *syscall.Stat_t) bool { return st.Uid == 0 || int(st.Uid) == os.Geteuid() }

// othersWrite says whether users other than root and the process's own may write. The
// group root, and the process's own, which is its user's alone on most systems, do not
// count.
func othersWrite(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return true
	}
	const group, other = 0o020, 0o002
	mode := info.Mode().Perm()
	return mode&other != 0 || mode&group != 0 && st.Gid != 0 && int(st.Gid) != os.Getegid()
}

func checkOwner(path string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !ours(st) {
		return fmt.Errorf("%s: belongs to another user (%d; this is %d)", path, Owner(info), os.Geteuid())
	}
	return nil
}

func checkOwn(path string, info fs.FileInfo) error {
	if Owner(info) != os.Geteuid() {
		return fmt.Errorf("%s: belongs to another user (%d; this is %d)", path, Owner(info), os.Geteuid())
	}
	if othersWrite(info) {
		return fmt.Errorf("%s: others can write to it (%s)", path, info.Mode())
	}
	return nil
}
