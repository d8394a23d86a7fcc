package process

import (
	"fmt"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// ExeFile returns a path at which the file behind m can be opened from here:
// the very file that is mapped, also when it was replaced on disk or lies in
// another mount namespace. The path is good while the process lives and the
// mapping stays as it is. ErrFileGone if there is none.
func (p *Process) ExeFile(m Mapping) (string, error) {
	if m.Inode == 0 {
		return "", fmt.Errorf("process %d: mapping %x-%x %s: %w: no file is behind it", p.pid, m.Start, m.End, m.Special, ErrFileGone)
	}
	view := p.view()
	// map_files leads to what is mapped, whatever its name, but following it
	// takes CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN.
	direct := procPath(view, fmt.Sprintf("map_files/%x-%x", m.Start, m.End))
	if canRead(direct, nil) {
		return direct, nil
	}
	if !m.Deleted && filepath.IsAbs(m.Path) {
		if path := procPath(view, "root") + m.Path; canRead(path, &m) {
			return path, nil
		}
	}
	if path := procPath(view, "exe"); canRead(path, &m) {
		return path, nil
	}
	return "", fmt.Errorf("process %d: %s: %w: it was replaced or removed; with CAP_CHECKPOINT_RESTORE (root) it can be read through map_files",
		p.pid, m.Path, ErrFileGone)
}

// canRead says whether a regular file can be read, and if m is given whether it is that
// mapping's. The process may put anything at its paths, at any time: a FIFO, whose
// opening waits, or a device, whose opening may do something. So the file is only
// located first, looked at, and what has been looked at is opened.
//
// The inode alone is compared: on btrfs and overlays stat gives another device number
// than maps does.
func canRead(path string, m *Mapping) bool {
	at, err := ignoreEINTR(func() (int, error) { return unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0) })
	if err != nil {
		return false
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if unix.Fstat(at, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || m != nil && st.Ino != m.Inode {
		return false
	}
	fd, err := ignoreEINTR(func() (int, error) {
		return unix.Open("/proc/self/fd/"+strconv.Itoa(at), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	})
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}
