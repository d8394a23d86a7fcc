package causes

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// asUser lets a program run as another user, since there are some that don't run as root.
func asUser(cmd *exec.Cmd, uid, gid uint32) {
	attr(cmd).Credential = &syscall.Credential{Uid: uid, Gid: gid}
}

// dieWithUs leaves nothing behind if this process is killed. The group is its own, so that Ctrl-C in a terminal is ours alone.
func dieWithUs(cmd *exec.Cmd) {
	attr(cmd).Setpgid = true
	attr(cmd).Pdeathsig = syscall.SIGKILL
}

func attr(cmd *exec.Cmd) *syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	return cmd.SysProcAttr
}

// makePipe makes a pipe with a name that other users may write to, too.
func makePipe(path string) error {
	return errors.Join(syscall.Mkfifo(path, 0o666), os.Chmod(path, 0o666))
}
