package process

import (
	"debug/elf"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// laid is where instructions of ours are, and what was there.
type laid struct {
	at  uint64
	old []byte
}

// slackBehindCode finds size bytes in the last page of a program's code that are behind what its file has for it.
func (p *Process) slackBehindCode(size uint64) (uint64, error) {
	f, err := p.openProgram()
	if err != nil {
		return 0, fmt.Errorf("process %d: its program: %w", p.pid, err)
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.file.Fd()), &st); err != nil {
		return 0, fmt.Errorf("process %d: its program: %w", p.pid, err)
	}
	maps, err := p.Maps()
	if err != nil {
		return 0, err
	}
	page := uint64(os.Getpagesize())
	for _, s := range f.Progs {
		if s.Type != elf.PT_LOAD || s.Flags&elf.PF_X == 0 || s.Flags&elf.PF_W != 0 || s.Filesz != s.Memsz || s.Filesz == 0 || s.Filesz > 1<<40 {
			continue
		}
		for _, m := range maps {
			if m.Inode != st.Ino || m.Perm != PermRead|PermExec || m.Offset != s.Off&^(page-1) {
				continue
			}
			end := m.Start + s.Off%page + s.Filesz
			at := (end + 15) &^ 15
			if end > m.Start && end <= m.End && m.End-end < page && at+size <= m.End {
				return at, nil
			}
		}
	}
	return 0, fmt.Errorf("process %d: %w: there is no room behind its code", p.pid, ErrNoGadget)
}

// lay writes the instructions, and take takes them away again.
func (l *laid) lay(p *Process) error {
	if l == nil {
		return nil
	}
	_, err := p.WriteAt(laidCode, l.at)
	return err
}

func (l *laid) take(p *Process) error {
	if l == nil {
		return nil
	}
	_, err := p.WriteAt(l.old, l.at)
	return err
}
