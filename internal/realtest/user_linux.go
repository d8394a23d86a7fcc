package realtest

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// A User is one that is nobody's: no account has its ID. Tests that run as root make processes of it, see [User.Start].
type User struct {
	ID     uint32 // of the user, and of the group
	Folder string // of its own, deleted with the test; what it is in can be searched by all and written by root only
	t      testing.TB
}

// firstUser is below the IDs that systemd gives out (61184) and that nobody and the overflow have (65534).
const firstUser = 52170

// NewUser returns the n-th user that no account has the ID of. It needs [Superuser].
func NewUser(t testing.TB, n int) *User {
	t.Helper()
	Need(t, Superuser)
	u := &User{t: t}
	for id := firstUser; u.ID == 0; id++ {
		_, err := user.LookupId(strconv.Itoa(id))
		_, gerr := user.LookupGroupId(strconv.Itoa(id))
		if err == nil || gerr == nil {
			continue
		}
		if n == 0 {
			u.ID = uint32(id)
		}
		n--
	}
	outer := SharedFolder(t)
	u.Folder = filepath.Join(outer, "own")
	if err := errors.Join(os.Mkdir(u.Folder, 0o755), os.Chown(u.Folder, int(u.ID), int(u.ID))); err != nil {
		t.Fatalf("realtest: a folder for user %d: %v", u.ID, err)
	}
	return u
}

// Copy puts a program or another file, which the user may be unable to reach, into its folder, owned by root, and returns where.
func (u *User) Copy(path string) string {
	u.t.Helper()
	to := filepath.Join(u.Folder, filepath.Base(path))
	if _, err := os.Lstat(to); err == nil {
		return to
	}
	from, err := os.Open(path)
	if err != nil {
		u.t.Fatalf("realtest: %v", err)
	}
	defer from.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err == nil {
		_, err = io.Copy(out, from)
		err = errors.Join(err, out.Close(), os.Chmod(to, 0o755))
	}
	if err != nil {
		u.t.Fatalf("realtest: %v", err)
	}
	return to
}

// Command is a program of the user's, which is copied to where the user can reach it, in the user's folder.
func (u *User) Command(path string, args ...string) *exec.Cmd {
	u.t.Helper()
	cmd := exec.Command(u.Copy(path), args...)
	cmd.Dir = u.Folder
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: u.ID, Gid: u.ID}}
	return cmd
}

// Start is [Start] as that user.
func (u *User) Start(path string, args ...string) *Proc {
	u.t.Helper()
	p := StartCommand(u.t, u.Command(path, args...))
	p.WaitLine("ready")
	return p
}
