package realtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// Stranger is a user, and a group, that nobody has: who attacks in tests of what another user could do.
const Stranger = 54321

// isRoot says whether processes can be started as another user.
func isRoot() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: %s: this is user %d", ErrMissing, Superuser, os.Geteuid())
	}
	return nil
}

// AsStranger returns a command that runs one test of this binary again, as Stranger: with role in the variable CALLREEL_TEST_ROLE. It ends
// when the test does. It needs [Superuser].
func AsStranger(t testing.TB, test, role string) *exec.Cmd {
	t.Helper()
	Need(t, Superuser)
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+test+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), "CALLREEL_TEST_ROLE="+role)
	cmd.Dir = "/"
	ownThread(cmd)
	BeStranger(cmd)
	return cmd
}

// BeStranger lets a command run as Stranger.
func BeStranger(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: Stranger, Gid: Stranger}
}

// StrangersFolder makes a folder of Stranger's below a new one that everybody can reach, which is what another user's home is to root.
func StrangersFolder(t testing.TB) string {
	t.Helper()
	Need(t, Superuser)
	dir := SharedFolder(t)
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(home, Stranger, Stranger); err != nil {
		t.Fatal(err)
	}
	return home
}

// SharedFolder makes a folder that everybody can reach, unlike those of t.TempDir, but only its owner change.
func SharedFolder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "callreel-shared-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
