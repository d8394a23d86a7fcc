package process

import (
	"fmt"
	"os"
	"path/filepath"

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
	if canRead(direct) {
		return direct, nil
	}
	if !m.Deleted && filepath.IsAbs(m.Path) {
		if path := procPath(view, "root") + m.Path; sameFile(path, m) && canRead(path) {
			return path, nil
		}
	}
	if path := procPath(view, "exe"); sameFile(path, m) && canRead(path) {
		return path, nil
	}
	return "", fmt.Errorf("process %d: %s: %w: it was replaced or removed; with CAP_CHECKPOINT_RESTORE (root) it can be read through map_files",
		p.pid, m.Path, ErrFileGone)
}

func canRead(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// sameFile compares the inode only: on btrfs and overlays stat gives another
// device number than maps does.
func sameFile(path string, m Mapping) bool {
	var st unix.Stat_t
	return unix.Stat(path, &st) == nil && st.Ino == m.Inode
}
