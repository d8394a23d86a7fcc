package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// playRole is what the test binary does when a test has started it as another
// process: one that traces a target, to be killed in the middle of it.
func playRole(role string, args []string) int {
	if role == "await-exec" {
		return playAwaitExec(args)
	}
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	p, err := Open(pid)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if role == "invoke" {
		return playInvoke(p, args[1:])
	}
	options := StopOptions{Timeout: 10 * time.Second}
	work := map[string]func(*Stopped) error{
		"stop":        doNothing,
		"inject":      inject,
		"inject-each": func(s *Stopped) error { return injectOnEach(s, map[string]int{}) },
		"nudge":       nudgeEach,
		"hold": func(*Stopped) error {
			fmt.Println("holding")
			time.Sleep(time.Minute)
			return nil
		},
	}[role]
	fmt.Println("ready")
	for {
		if _, err := p.Stop(context.Background(), options, work); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
}

// inject makes the target map and unmap a page.
func inject(s *Stopped) error {
	const tries = 5 // on a machine that has no time for us what a call has returned may be lost
	addr, err := s.Syscall(unix.SYS_MMAP, 0, 4096, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, ^uint64(0), 0)
	for try := 1; errors.Is(err, ErrLate) && try < tries; try++ {
		addr, err = s.Syscall(unix.SYS_MMAP, 0, 4096, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, ^uint64(0), 0)
	}
	if err != nil {
		return err
	}
	if _, err = s.Syscall(unix.SYS_MUNMAP, addr, 4096); errors.Is(err, ErrLate) { // it has been made
		return nil
	}
	return err
}

// nudgeEach lets each thread run a little.
func nudgeEach(s *Stopped) error {
	for _, t := range s.Threads() {
		if _, err := t.Nudge(2, func(*Regs) bool { return false }); err != nil {
			return err
		}
	}
	return nil
}

// startRole starts the test binary as another process in that role.
func startRole(t testing.TB, role string, pid int, more ...string) *target {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startTarget(t, "env", append([]string{"PROCESS_TEST_ROLE=" + role, exe, strconv.Itoa(pid)}, more...)...)
}

func killRole(g *target) {
	_ = g.cmd.Process.Kill()
	_ = g.cmd.Wait()
	g.ended = true
}
