package realtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A Terminal is a pseudo-terminal with a program on it, and its screen as a terminal would show it.
type Terminal struct {
	t      testing.TB
	master *os.File
	cmd    *exec.Cmd
	done   chan struct{}

	mu     sync.Mutex
	screen Screen
	grown  chan struct{} // closed and replaced whenever something is written
	raw    strings.Builder
}

// OnTerminal runs cmd on a terminal of that size, as the leader of a session of its own. It is ended when the test is over.
func OnTerminal(t testing.TB, columns, lines int, cmd *exec.Cmd) *Terminal {
	t.Helper()
	master, slave, err := openTerminal()
	if err != nil {
		t.Fatalf("realtest: a pseudo-terminal: %v", err)
	}
	m := &Terminal{t: t, master: master, cmd: cmd, done: make(chan struct{}), grown: make(chan struct{})}
	m.screen.resize(columns, lines)
	m.Resize(columns, lines)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, "TERM=xterm-256color")
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the process's life is tied to the thread's
		defer runtime.UnlockOSThread()
		ownThread(cmd)
		cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty = true, true
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // its state says how it ended
			close(m.done)
		}
	}()
	if err := errors.Join(<-started, slave.Close()); err != nil {
		t.Fatalf("realtest: start %s: %v", cmd.Args[0], errors.Join(err, master.Close()))
	}
	go m.read()
	t.Cleanup(func() {
		if m.running() {
			_ = cmd.Process.Kill() // it may have ended just now
		}
		<-m.done
		_ = master.Close() // nobody has it any more
	})
	return m
}

// Pty returns both ends of a new pseudo-terminal, that of the terminal and that of programs. They are closed when the test is over.
func Pty(t testing.TB) (master, slave *os.File) {
	t.Helper()
	master, slave, err := openTerminal()
	if err != nil {
		t.Fatalf("realtest: a pseudo-terminal: %v", err)
	}
	t.Cleanup(func() { _ = errors.Join(slave.Close(), master.Close()) })
	return master, slave
}

// openTerminal returns both ends of a new pseudo-terminal; see pty(7).
func openTerminal() (master, slave *os.File, err error) {
	if master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	return master, slave, nil
}

func (m *Terminal) read() {
	buf := make([]byte, 1<<16)
	for {
		n, err := m.master.Read(buf)
		m.mu.Lock()
		m.screen.write(buf[:n])
		m.raw.Write(buf[:n])
		close(m.grown)
		m.grown = make(chan struct{})
		m.mu.Unlock()
		if err != nil {
			return // nobody has the other end any more
		}
	}
}

// Type types text.
func (m *Terminal) Type(text string) {
	m.t.Helper()
	if _, err := m.master.WriteString(text); err != nil {
		m.t.Fatalf("realtest: type %q: %v\n%s", text, err, m.Screen())
	}
}

// Resize gives the terminal another size, which the program is told of.
func (m *Terminal) Resize(columns, lines int) {
	m.t.Helper()
	size := unix.Winsize{Col: uint16(columns), Row: uint16(lines)}
	m.mu.Lock()
	m.screen.resize(columns, lines)
	m.mu.Unlock()
	if err := unix.IoctlSetWinsize(int(m.master.Fd()), unix.TIOCSWINSZ, &size); err != nil {
		m.t.Fatalf("realtest: size of a terminal: %v", err)
	}
}

// Screen is what the terminal shows now.
func (m *Terminal) Screen() Screen {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.screen.clone()
}

// Written is all that was written to the terminal.
func (m *Terminal) Written() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.raw.String()
}

// Wait waits until the screen is as it should be, and returns it.
func (m *Terminal) Wait(what string, is func(s Screen) bool) Screen {
	m.t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		m.mu.Lock()
		s, grown := m.screen.clone(), m.grown
		m.mu.Unlock()
		if is(s) {
			return s
		}
		select {
		case <-grown:
		case <-late.C:
			m.t.Fatalf("realtest: %s: after %v the screen has no %s:\n%s", m.cmd.Args[0], patience, what, s)
		}
	}
}

// WaitText waits for a text on the screen.
func (m *Terminal) WaitText(text string) Screen {
	m.t.Helper()
	return m.Wait(fmt.Sprintf("%q", text), func(s Screen) bool { return strings.Contains(s.String(), text) })
}

// Cooked says whether the terminal takes whole lines, shows what is typed and makes signals of Ctrl-C, as shells leave it.
func (m *Terminal) Cooked() bool {
	m.t.Helper()
	return Cooked(m.t, m.master)
}

// Cooked is the same of any terminal.
func Cooked(t testing.TB, terminal *os.File) bool {
	t.Helper()
	mode, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatalf("realtest: modes of a terminal: %v", err)
	}
	const lines, out = unix.ICANON | unix.ECHO | unix.ISIG | unix.IEXTEN, unix.OPOST
	return mode.Lflag&lines == lines && mode.Oflag&out == out && mode.Iflag&unix.ICRNL != 0
}

// Pid is the program's.
func (m *Terminal) Pid() int { return m.cmd.Process.Pid }

// Signal sends the program a signal.
func (m *Terminal) Signal(sig os.Signal) {
	m.t.Helper()
	if err := m.cmd.Process.Signal(sig); err != nil {
		m.t.Fatalf("realtest: %s: send %v: %v\n%s", m.cmd.Args[0], sig, err, m.Screen())
	}
}

// Code waits for the program's end and returns its exit code, or 128 + the number of the signal that killed it.
func (m *Terminal) Code() int {
	m.t.Helper()
	select {
	case <-m.done:
	case <-time.After(patience):
		m.t.Fatalf("realtest: %s has not ended in %v:\n%s", m.cmd.Args[0], patience, m.Screen())
	}
	return exitCode(m.cmd.ProcessState)
}

func (m *Terminal) running() bool {
	select {
	case <-m.done:
		return false
	default:
		return true
	}
}
