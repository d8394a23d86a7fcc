package process

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// errPrivileges: the kernel would not give a program its privileges under an unprivileged tracer (execve(2)).
var errPrivileges = errors.New("the program may be setuid or have capabilities, which it would not get under a tracer")

// keepsPrivileges returns an ErrNotPermitted unless the execve that t is about to make does the same whether we trace it or not.
func (t *Thread) keepsPrivileges(regs *Regs) error {
	if HasCapability(capSysPtrace) {
		return nil
	}
	if err := t.plainProgram(regs); err != nil {
		return fmt.Errorf("process %d: thread %d: %w: %w: %w (CAP_SYS_PTRACE makes it possible)",
			t.s.p.pid, t.TID, ErrNotPermitted, errPrivileges, err)
	}
	return nil
}

// plainProgram returns an error unless the program of that execve certainly gains no privileges. One that does
// not exist gains none.
func (t *Thread) plainProgram(regs *Regs) error {
	task := taskPath(t.s.p.pid, t.TID, "")
	if err := sameFiles(task); err != nil {
		return err
	}
	name, folder := regs.Arg(0), filepath.Join(task, "cwd")
	if call, _ := regs.Syscall(); call == unix.SYS_EXECVEAT {
		name = regs.Arg(1)
		if fd := int32(regs.Arg(0)); fd != unix.AT_FDCWD {
			folder = filepath.Join(task, "fd", strconv.Itoa(int(fd)))
		}
	}
	path, err := t.s.p.pathAt(name)
	if err != nil {
		return err
	}
	const maxScripts = 8 // the kernel follows fewer
	for range maxScripts {
		if !filepath.IsAbs(path) {
			path = strings.TrimSuffix(folder+"/"+path, "/") // no Join: "..", through a link, is the kernel's to follow
		}
		interpreter, err := plainFile(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && interpreter == "" {
			return nil
		}
		if err != nil {
			return err
		}
		path, folder = interpreter, filepath.Join(task, "cwd")
	}
	return fmt.Errorf("%s: too many interpreters", path)
}

// sameFiles returns an error unless the task sees files under the names that we see them under.
func sameFiles(task string) error {
	for _, link := range []string{"ns/mnt", "root"} {
		theirs, err := os.Stat(filepath.Join(task, link))
		if err != nil {
			return err
		}
		ours, err := os.Stat(filepath.Join("/proc/self", link))
		if err != nil {
			return err
		}
		if !os.SameFile(ours, theirs) {
			return errors.New("it sees other files than we do")
		}
	}
	return nil
}

// pathAt reads a path from memory.
func (p *Process) pathAt(addr uint64) (string, error) {
	buf := make([]byte, unix.PathMax)
	n := p.ReadUpTo(buf, addr)
	path, _, ok := strings.Cut(string(buf[:n]), "\x00")
	if !ok {
		return "", errors.New("its path is not readable")
	}
	return path, nil
}

// plainFile returns an error if a program's file has privileges, and its interpreter if it is a script.
func plainFile(path string) (interpreter string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		return "", fmt.Errorf("%s: mode %v", path, info.Mode())
	}
	switch _, err := unix.Getxattr(path, "security.capability", nil); {
	case err == nil:
		return "", fmt.Errorf("%s: has capabilities", path)
	case !errors.Is(err, unix.ENODATA) && !errors.Is(err, unix.ENOTSUP):
		return "", fmt.Errorf("%s: capabilities: %w", path, err)
	}
	if !info.Mode().IsRegular() {
		return "", nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("%s: interpreter unknown: %w", path, err)
	}
	defer f.Close()
	const most = 256 // BINPRM_BUF_SIZE
	line, err := bufio.NewReader(io.LimitReader(f, most)).ReadString('\n')
	if err != nil && err != io.EOF {
		return "", err
	}
	line, script := strings.CutPrefix(line, "#!")
	fields := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' || r == 0 })
	if !script || len(fields) == 0 {
		return "", nil
	}
	return fields[0], nil
}
