package sampler

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// openBelowRoot opens a file below a process's root folder for reading. No link leads
// out of that folder, and the file itself may be none.
func openBelowRoot(pid int, name string) (*os.File, error) {
	root := "/proc/" + strconv.Itoa(pid) + "/root"
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC | unix.O_NOCTTY // of a pipe, no waiting for its writer
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: root, Err: err}
	}
	defer unix.Close(dir)
	fd, err := unix.Openat2(dir, name, &unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // before Linux 5.6, and in sandboxes that know no newer call
		fd, err = unix.Openat(dir, name, flags, 0)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: root + "/" + name, Err: err}
	}
	return os.NewFile(uintptr(fd), root+"/"+name), nil
}

// trustJITMap says why a file's names are not to be believed for a process of a user
// that has started at a time.
func trustJITMap(info os.FileInfo, user int, started time.Time) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || !info.Mode().IsRegular() || st.Nlink != 1:
		return errJITFile
	case st.Uid != 0 && int(st.Uid) != user:
		return errJITOwner
	case info.Mode().Perm()&0o002 != 0:
		return errJITOpen
	case info.ModTime().Before(started):
		return errJITOld
	}
	return nil
}

// startedAt is when a process has started, given its ticks since boot; two seconds early, since
// the time of the boot is given in whole ones.
func startedAt(ticks uint64) time.Time {
	const perSecond = 100 // USER_HZ
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return time.Time{}
	}
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte("btime ")); ok {
			boot, err := strconv.ParseInt(string(bytes.TrimSpace(rest)), 10, 64)
			if err != nil {
				break
			}
			return time.Unix(boot, 0).Add(time.Duration(ticks) * (time.Second / perSecond)).Add(-2 * time.Second)
		}
	}
	return time.Time{}
}
