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

// openBelowRoot opens a regular file below a process's root folder for reading. No link leads
// out of that folder, and the file itself may be none. What the process has put there instead is
// only located: opening some devices has effects, and a FIFO's writer would notice.
func openBelowRoot(pid int, name string) (*os.File, error) {
	root := "/proc/" + strconv.Itoa(pid) + "/root"
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: root, Err: err}
	}
	defer unix.Close(dir)
	const located = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	at, err := unix.Openat2(dir, name, &unix.OpenHow{Flags: located, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // before Linux 5.6, and in sandboxes that know no newer call
		at, err = unix.Openat(dir, name, located, 0)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: root + "/" + name, Err: err}
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return nil, &os.PathError{Op: "stat", Path: root + "/" + name, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, &os.PathError{Op: "open", Path: root + "/" + name, Err: errJITFile}
	}
	fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(at), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
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
