package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// used is what a process used.
type used struct {
	CPU float64 `json:"cpu"` // seconds, user and system
	RSS float64 `json:"rss"` // peak, bytes
}

// measured rewrites a command so that it is run by a process of its own, another bench, which
// writes what the command used to a file. For Linux counts the memory of who starts a process as
// the process's own, and this bench's is large.
func measured(cmd *exec.Cmd, file string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd.Args = append([]string{self, "-measured", file, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = self
	return nil
}

// runMeasured is that other bench. It returns the command's exit code.
func runMeasured(file string, args []string) (int, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		return 1, err
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 1, errors.New("this system does not count what a process used")
	}
	unit := 1024.0 // getrusage(2) on Linux counts KiB
	if runtime.GOOS == "darwin" {
		unit = 1
	}
	text, err := json.Marshal(used{
		CPU: (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(),
		RSS: float64(usage.Maxrss) * unit,
	})
	if err != nil {
		return 1, err
	}
	return cmd.ProcessState.ExitCode(), os.WriteFile(file, text, 0o600)
}

// readUsed reads what runMeasured has written, once.
func readUsed(file string) (u used, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return u, err
	}
	if err := os.Remove(file); err != nil { // lest it is taken for another command's
		return u, err
	}
	if err := json.Unmarshal(text, &u); err != nil {
		return u, fmt.Errorf("%s: %w", file, err)
	}
	return u, nil
}

// cpuTime is what this process has used, user and system.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
