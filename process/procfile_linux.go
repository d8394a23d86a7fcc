package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// gone turns the errors that /proc gives for an ended process into ErrNoProcess.
func (p *Process) gone(err error) error { return goneError(p.pid, err) }

func goneError(pid int, err error) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("process %d: %w", pid, ErrNoProcess)
	}
	return fmt.Errorf("process %d: %w", pid, err)
}

func procPath(pid int, name string) string {
	return "/proc/" + strconv.Itoa(pid) + "/" + name
}

func taskPath(pid, tid int, name string) string {
	return procPath(pid, filepath.Join("task", strconv.Itoa(tid), name))
}

// readProc is os.ReadFile for small files of /proc in a third of the time: there may
// be thousands to read.
func readProc(name string) ([]byte, error) {
	const most = 1 << 20 // a status lists up to 65,536 groups
	fd, err := ignoreEINTR(func() (int, error) { return unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	buf := make([]byte, 0, 2048)
	for len(buf) < most {
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, len(buf))
		}
		n, err := ignoreEINTR(func() (int, error) { return unix.Read(fd, buf[len(buf):cap(buf)]) })
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: name, Err: err}
		}
		if n == 0 {
			return buf, nil
		}
		buf = buf[:len(buf)+n]
	}
	return nil, &os.PathError{Op: "read", Path: name, Err: unix.EFBIG}
}

// readOnce reads a file of /proc that is known to fit into room, with one read: threads may come by the ten thousand a
// second.
func readOnce(name string, buf []byte) ([]byte, error) {
	fd, err := ignoreEINTR(func() (int, error) { return unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	n, err := ignoreEINTR(func() (int, error) { return unix.Read(fd, buf) })
	if err != nil {
		return nil, &os.PathError{Op: "read", Path: name, Err: err}
	}
	return buf[:n], nil
}

func ignoreEINTR(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return n, err
		}
	}
}

func readStat(pid, tid int) (stat, error) {
	text, err := readProc(taskPath(pid, tid, "stat"))
	if err != nil {
		return stat{}, goneError(pid, err)
	}
	st, err := parseStat(text)
	if err != nil {
		return stat{}, fmt.Errorf("process %d: thread %d: %w", pid, tid, err)
	}
	return st, nil
}

func readStatus(pid, tid int) (Status, error) {
	// A thread's ID opens /proc/TID too, but only the leader's has a task folder
	// under its own number for certain, so the plain file is the first choice.
	name := procPath(pid, "status")
	if tid != pid {
		name = taskPath(pid, tid, "status")
	}
	text, err := readProc(name)
	if err != nil {
		return Status{}, goneError(pid, err)
	}
	s, err := ParseStatus(text)
	if err != nil {
		return Status{}, fmt.Errorf("process %d: thread %d: %w", pid, tid, err)
	}
	return s, nil
}

func taskIDs(pid int) ([]int, error) {
	dir, err := os.Open(procPath(pid, "task"))
	if err != nil {
		return nil, goneError(pid, err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, goneError(pid, err)
	}
	tids, err := atois(names)
	if err != nil {
		return nil, fmt.Errorf("process %d: task folder: %w", pid, err)
	}
	return tids, nil
}
