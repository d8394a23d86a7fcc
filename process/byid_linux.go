package process

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// What follows is told of whatever process or thread has an ID now: who needs to know that it is still the same holds on to it, see
// Hold, or compares start times.

// StartTime returns when a thread was started, in clock ticks since boot (proc_pid_stat(5), field 22); a process's is that of the thread
// which has its ID.
func StartTime(pid, tid int) (uint64, error) {
	name := procPath(pid, "stat")
	if tid != pid {
		name = taskPath(pid, tid, "stat")
	}
	return startTime(pid, name)
}

// OwnStartTime is the StartTime of this process, whatever ID it has where /proc is from.
func OwnStartTime() (uint64, error) { return startTime(os.Getpid(), "/proc/self/stat") }

func startTime(pid int, name string) (uint64, error) {
	var buf [statSize]byte
	text, err := readOnce(name, buf[:])
	if err != nil {
		return 0, goneError(pid, err)
	}
	st, err := parseStat(text)
	if err != nil {
		return 0, fmt.Errorf("process %d: %w", pid, err)
	}
	return st.startTime, nil
}

// statSize is more than a stat file has.
const statSize = 4096

// ThreadName returns a thread's name, of at most 15 bytes; a process's is that of the thread which has its ID.
func ThreadName(pid, tid int) (string, error) {
	var buf [64]byte
	text, err := readOnce(taskPath(pid, tid, "comm"), buf[:])
	if err != nil {
		return "", goneError(pid, err)
	}
	return strings.TrimSuffix(string(text), "\n"), nil
}

// StatusOf returns the status of a thread; a process's is that of the thread which has its ID.
func StatusOf(pid, tid int) (Status, error) { return readStatus(pid, tid) }

// ThreadIDs lists the threads of a process that exist now, in no order.
func ThreadIDs(pid int) ([]int, error) { return taskIDs(pid) }

// IDs lists the IDs of all processes that are seen from here, in no order.
func IDs() ([]int, error) { return processIDs() }

// Children lists the IDs of a process's children, those of all its threads, in order (proc_tid_children(5)). Those that it has while
// they are listed may be missing.
func Children(pid int) ([]int, error) {
	tids, err := taskIDs(pid)
	if err != nil {
		return nil, err
	}
	var all []int
	for _, tid := range tids {
		text, err := readProc(taskPath(pid, tid, "children"))
		if err != nil {
			continue // it has ended
		}
		children, err := atois(strings.Fields(string(text)))
		if err != nil {
			return nil, fmt.Errorf("process %d: thread %d: children: %w", pid, tid, err)
		}
		all = append(all, children...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Program returns the path of a process's program as the process sees it; with " (deleted)" behind it if that name has been removed
// or replaced since.
func Program(pid int) (string, error) {
	path, err := os.Readlink(procPath(pid, "exe"))
	if err != nil {
		return "", goneError(pid, err)
	}
	return path, nil
}

// Ending says whether a process has SIGKILL pending or is ending, and whether it has ended and only waits for its parent to notice, or
// is no more (proc_pid_stat(5), fields 3 and 9; proc_pid_status(5), ShdPnd).
func Ending(pid int) (ending, ended bool) {
	text, err := readProc(procPath(pid, "stat"))
	if err != nil {
		return false, true
	}
	st, err := parseStat(text)
	switch {
	case err != nil:
		return false, false
	case st.ended():
		return true, true
	case st.flags&flagExiting != 0:
		return true, false
	}
	status, err := readStatus(pid, pid)
	if err != nil {
		return false, true
	}
	return status.SigPending&(1<<(unix.SIGKILL-1)) != 0, false
}

// Namespace returns the inode of one of a process's namespaces, such as "pid" or "user" (namespaces(7)).
func Namespace(pid int, kind string) (uint64, error) {
	var st unix.Stat_t
	name := procPath(pid, "ns/"+kind)
	if err := unix.Stat(name, &st); err != nil {
		return 0, goneError(pid, &os.PathError{Op: "stat", Path: name, Err: err})
	}
	return st.Ino, nil
}

// maxEnviron bounds what is read of an environment, which may be any part of the process's memory (PR_SET_MM_MAP).
const maxEnviron = 1 << 20

// Getenv returns a variable of the environment that a process was started with, as far as 1 MiB reaches. It is false if it is not there.
func Getenv(pid int, name string) (string, bool) {
	f, err := os.Open(procPath(pid, "environ"))
	if err != nil {
		return "", false
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, maxEnviron)) // what there is before an error counts
	for entry := range bytes.SplitSeq(text, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(name+"=")); ok {
			return string(value), true
		}
	}
	return "", false
}

// HasFile says whether there is a file at a path as the process sees it. Links on the way are followed as we see them.
func (p *Process) HasFile(path string) bool {
	_, err := os.Stat(p.path("root") + "/" + path)
	return err == nil
}

// A Descriptor is one of a process's open files.
type Descriptor struct {
	FD   int
	Name string // what the kernel calls the file; " (deleted)" may stand behind a path
	// Info is that of the file itself; nil if it has been closed since it was named.
	Info os.FileInfo
}

// Descriptors lists the open files of the process whose names are wanted.
func (p *Process) Descriptors(wanted func(name string) bool) ([]Descriptor, error) {
	dir := p.path("fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, p.gone(err)
	}
	var list []Descriptor
	for _, e := range entries {
		path := dir + "/" + e.Name()
		name, err := os.Readlink(path)
		if err != nil || !wanted(name) {
			continue // closed meanwhile
		}
		d := Descriptor{Name: name}
		if d.FD, err = strconv.Atoi(e.Name()); err != nil {
			return nil, fmt.Errorf("process %d: descriptors: %w", p.pid, err)
		}
		if info, err := os.Stat(path); err == nil {
			d.Info = info
		}
		list = append(list, d)
	}
	return list, nil
}

// ThreadGone says whether a thread of a process has ended. A signal of 0 is sent to nobody, it is only looked whether it could be (kill(2)): that takes a
// hundredth of the time of a look into /proc. IDs that there can't be are nobody's.
func ThreadGone(pid, tid int) bool {
	_, _, err := unix.RawSyscall(unix.SYS_TGKILL, uintptr(pid), uintptr(tid), 0)
	return err == unix.ESRCH || err == unix.EINVAL
}

// FileOf says what a descriptor of a process leads to now (proc_pid_fd(5)): a path, or "socket:[INODE]", "pipe:[INODE]",
// "anon_inode:[KIND]". Nothing is opened.
func FileOf(pid, fd int) (string, error) {
	to, err := os.Readlink(procPath(pid, "fd/"+strconv.Itoa(fd)))
	if err != nil {
		return "", goneError(pid, err)
	}
	return to, nil
}

// WaitingAt says of a thread what Process.WaitingAt says.
func WaitingAt(pid, tid int) (Waiting, error) {
	var buf [512]byte
	text, err := readOnce(taskPath(pid, tid, "syscall"), buf[:])
	if err != nil {
		return Waiting{}, goneError(pid, err)
	}
	w, err := parseWaiting(string(text))
	if err != nil {
		return Waiting{}, fmt.Errorf("process %d: thread %d: %w", pid, tid, err)
	}
	return w, nil
}

// Scheduled is how long a thread has run up to now, and how long it was ready to but had no processor, by the kernel's own count. It is
// false for a thread that has ended, and where the kernel doesn't count it.
func Scheduled(pid, tid int) (ran, queued time.Duration, ok bool) {
	var buf [128]byte
	text, err := readOnce(taskPath(pid, tid, "schedstat"), buf[:])
	if err != nil {
		return 0, 0, false
	}
	ran, queued, err = parseSchedstat(text)
	return ran, queued, err == nil
}
