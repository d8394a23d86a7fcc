package guest

import (
	"os/exec"
	"syscall"
)

// endWithUs makes the kernel end the guest when the thread that started it is gone.
func endWithUs(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
