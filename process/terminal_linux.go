package process

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// FromTerminal says whether a command of ours has got a signal of ours from the terminal
// already: Ctrl-C and Ctrl-\ go to all processes of the foreground group. Programs count
// them, and many end at once at the second.
func FromTerminal(sig syscall.Signal, command int) bool {
	if sig != syscall.SIGINT && sig != syscall.SIGQUIT {
		return false
	}
	tty, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return false // there is none
	}
	defer unix.Close(tty)
	foreground, err := unix.IoctlGetInt(tty, unix.TIOCGPGRP)
	group, gerr := unix.Getpgid(command)
	return err == nil && gerr == nil && foreground == unix.Getpgrp() && foreground == group
}
