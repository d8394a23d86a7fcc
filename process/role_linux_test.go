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

// lateTries is how often a system call is tried whose result is lost since a machine has no time for us: see ErrLate.
const lateTries = 5

// inTarget makes a system call in the target, more than once if what it returns is lost.
func inTarget(s *Stopped, number uintptr, args ...uint64) (value uint64, err error) {
	for range lateTries {
		if value, err = s.Syscall(number, args...); !errors.Is(err, ErrLate) {
			break
		}
	}
	return value, err
}

// batchInTarget is inTarget for several.
func batchInTarget(s *Stopped, calls []Call) (results []SyscallResult, err error) {
	for range lateTries {
		if results, err = s.SyscallBatch(calls); !errors.Is(err, ErrLate) {
			break
		}
	}
	return results, err
}

// onceInTarget is for calls that are not to be made twice; what they return if that is lost is taken for 0.
func onceInTarget(s *Stopped, number uintptr, args ...uint64) (uint64, error) {
	value, err := s.Syscall(number, args...)
	if errors.Is(err, ErrLate) {
		return 0, nil
	}
	return value, err
}

// inject makes the target map and unmap a page.
func inject(s *Stopped) error {
	addr, err := inTarget(s, unix.SYS_MMAP, 0, 4096, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, ^uint64(0), 0)
	if err != nil {
		return err
	}
	_, err = onceInTarget(s, unix.SYS_MUNMAP, addr, 4096)
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
