package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ErrNotMemfd: a descriptor of the target's is not the fresh memfd that it was told to make. Something that shares its descriptors has
// put another file there.
var ErrNotMemfd = errors.New("not the memfd that was made")

// A Memfd is memory that the target has made by memfd_create(2), open here too.
type Memfd struct {
	FD         int    // ours; the caller closes it
	Dev, Inode uint64 // as Mapping has them
}

// TakeMemfd opens here what the stopped target has as descriptor fd, which memfd_create has given it just now. It may be anything else by
// now: who shares the target's descriptors (clone(2) with CLONE_FILES) isn't stopped. So it is not opened by a path, which would give us
// more rights to a file than the target has; it is copied (pidfd_getfd(2), Linux 5.6). Without that the file is looked at before it is
// opened. Either way it is believed only if it is a memfd, is empty, may be written, and nothing has been sealed (memfd_create(2));
// else the error is ErrNotMemfd.
func (s *Stopped) TakeMemfd(fd int) (Memfd, error) {
	var errs []error
	own, err := s.p.copyDescriptor(fd)
	for _, open := range []func() (int, error){
		func() (int, error) { return own, err },
		func() (int, error) { return s.openMemfd(fd) },
	} {
		own, err := open()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		m, err := checkMemfd(own)
		if err == nil {
			return m, nil
		}
		errs = append(errs, errors.Join(err, unix.Close(own)))
	}
	return Memfd{FD: -1}, fmt.Errorf("process %d: descriptor %d: %w", s.p.pid, fd, errors.Join(errs...))
}

// copyDescriptor copies a descriptor of the process's first thread.
func (p *Process) copyDescriptor(fd int) (int, error) {
	if p.pidfd < 0 {
		return -1, fmt.Errorf("pidfd_getfd: %w", unix.ENOSYS)
	}
	own, err := unix.PidfdGetfd(p.pidfd, fd, 0)
	if err != nil {
		return -1, fmt.Errorf("pidfd_getfd: %w", err)
	}
	return own, nil
}

// openMemfd is for kernels before 5.6, for containers whose policy forbids pidfd_getfd, and for targets whose first thread has ended or has
// descriptors of its own. O_PATH opens nothing; what it leads to is then checked, and opened without another look at the target's name.
func (s *Stopped) openMemfd(fd int) (own int, err error) {
	const most = 64 // threads; they share their descriptors, as a rule
	threads := s.Threads()
	err = ErrNotMemfd
	for _, t := range threads[:min(len(threads), most)] {
		path := taskPath(s.p.pid, t.TID, "fd/"+strconv.Itoa(fd))
		if own, err = openChecked(path); err == nil {
			return own, nil
		}
	}
	return -1, err
}

func openChecked(path string) (int, error) {
	at, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(at)
	if _, err := statMemfd(at); err != nil {
		return -1, err
	}
	own, err := unix.Open("/proc/self/fd/"+strconv.Itoa(at), unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return own, nil
}

// checkMemfd makes sure that a descriptor of ours is a fresh memfd.
func checkMemfd(fd int) (Memfd, error) {
	m, err := statMemfd(fd)
	if err != nil {
		return m, err
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_ACCMODE != unix.O_RDWR || flags&unix.O_PATH != 0 {
		return m, fmt.Errorf("%w: it isn't open for reading and writing", ErrNotMemfd)
	}
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	const sealExec = 0x20 // F_SEAL_EXEC, which MFD_NOEXEC_SEAL sets
	if err != nil || seals&^sealExec != 0 {
		return m, fmt.Errorf("%w: it has seals (%#x, %v)", ErrNotMemfd, seals, err)
	}
	return m, nil
}

// statMemfd makes sure that a descriptor, which may be an O_PATH one, is an empty file of the file system that memfds are in, which
// nobody can mount and in which nothing has a name.
func statMemfd(fd int) (Memfd, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Memfd{}, err
	}
	like, err := memfdDevice()
	if err != nil {
		return Memfd{}, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink != 0 || st.Size != 0 || st.Dev != like {
		return Memfd{}, fmt.Errorf("%w: mode %#o, %d links, %d bytes, device %#x", ErrNotMemfd, st.Mode, st.Nlink, st.Size, st.Dev)
	}
	return Memfd{FD: fd, Dev: uint64(unix.Major(st.Dev))<<32 | uint64(unix.Minor(st.Dev)), Inode: st.Ino}, nil
}

// memfdDevice is the device number of memfds.
func memfdDevice() (uint64, error) {
	fd, err := unix.MemfdCreate("callreel-like", unix.MFD_CLOEXEC)
	if err != nil {
		return 0, fmt.Errorf("memfd_create: %w", err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, err
	}
	return st.Dev, nil
}
