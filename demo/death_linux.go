package demo

import (
	"os/exec"
	"syscall"
)

// dieWithUs lets a child end when the thread that starts it does.
func dieWithUs(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
