package process

import (
	"debug/elf"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A program without a C library may lack the instructions that remote system calls are made of. They are then laid into what the
// last page of its code has behind the code, for as long as the calls take. If we die meanwhile they stay, where nothing else leads,
// and the thread gets through.
var laidCode = []byte{
	0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05, // mov $15, %rax; syscall
	0xc3,                   // ret
	0x48, 0x89, 0x03, 0xc3, // mov %rax, (%rbx); ret
}

const (
	laidSyscall = 7
	laidStore   = 10
)

// laid is where instructions of ours are, and what was there.
type laid struct {
	at  uint64
	old []byte
}

// laidGadgets are gadgets that makeCalls is to lay.
func (p *Process) laidGadgets() (*gadgets, error) {
	at, err := p.slackBehindCode(uint64(len(laidCode)))
	if err != nil {
		return nil, err
	}
	old := make([]byte, len(laidCode))
	if _, err := p.ReadAt(old, at); err != nil {
		return nil, err
	}
	g := &gadgets{laid: &laid{at, old}, syscall: at + laidSyscall, restorer: at, store: at + laidStore}
	g.restorerCode = restorerLong
	var ok bool
	if g.tail, ok = decodeStore(laidCode[laidStore:]); !ok {
		return nil, fmt.Errorf("process %d: %w", p.pid, ErrNoGadget)
	}
	return g, nil
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
