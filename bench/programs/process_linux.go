package programs

import (
	"os/exec"
	"syscall"
)

// asUser lets a program run as another user, since there are some that don't run as root.
func asUser(cmd *exec.Cmd, uid, gid uint32) {
	attr(cmd).Credential = &syscall.Credential{Uid: uid, Gid: gid}
}

func dieWithUs(cmd *exec.Cmd) { attr(cmd).Setpgid = true }

func attr(cmd *exec.Cmd) *syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	return cmd.SysProcAttr
}
