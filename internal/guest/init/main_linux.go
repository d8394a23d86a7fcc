// init is what the guest's kernel starts. It makes the guest ready, runs the jobs and switches the guest off.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// runner is the name under which the program starts itself to run jobs: the first process only takes in what others leave.
const runner = "runner"

func main() {
	if len(os.Args) > 1 && os.Args[1] == runner {
		if err := run(); err != nil {
			fmt.Fprintln(os.Stderr, "init:", err)
			os.Exit(1)
		}
		return
	}
	first()
}

// first is what the first process does. If it returned the kernel would panic.
func first() {
	err := prepare()
	if err == nil {
		err = startRunner()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "init:", err)
	}
	unix.Sync()
	_ = unix.Mount("", "/root/.cache", "", unix.MS_REMOUNT|unix.MS_RDONLY, "")
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	for {
		time.Sleep(time.Hour)
	}
}

// startRunner starts the runner and waits for it; all orphans that end meanwhile are taken in.
func startRunner() error {
	cmd := exec.Command("/proc/self/exe", runner)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return fmt.Errorf("wait: %w", err)
		case pid == cmd.Process.Pid:
			if status != 0 {
				return fmt.Errorf("what runs the jobs ended with status %#x", uint32(status))
			}
			return nil
		}
	}
}
