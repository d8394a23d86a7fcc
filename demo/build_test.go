package demo

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// needCompiler skips the test where there is no C compiler for Linux, and fails it in CI.
func needCompiler(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil || runtime.GOOS != "linux" {
		if os.Getenv("CI") != "" {
			t.Fatalf("missing capability: cc on Linux (%v)", err)
		}
		t.Skipf("missing capability: cc on Linux (%v)", err)
	}
}

func TestServerAndLoadAreBuiltAndWorkTogether(t *testing.T) {
	needCompiler(t)
	// The children die with the thread that starts them.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	dir := t.TempDir()
	made, err := Build(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(made, " -o server server.c") {
		t.Errorf("command line %q", made)
	}
	for _, name := range Files() {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	r, err := Start(context.Background(), dir, 60)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Stop()
	time.Sleep(time.Second)
	seen, err := r.EndLoad()
	if err != nil || !regexp.MustCompile(`^[1-9][0-9]+ requests: half within [0-9.]+ ms`).MatchString(seen) {
		t.Errorf("%q, %v", seen, err)
	}
	r.Stop()
	if r.server.ProcessState == nil || r.load.ProcessState == nil {
		t.Error("the server or the load goes on")
	}
}

func TestCompilerThatIsMissingOrFailsIsNamed(t *testing.T) {
	for _, cc := range []string{"callreel-no-such-compiler", "false"} {
		t.Setenv("CC", cc)
		_, err := Build(context.Background(), t.TempDir())
		if !errors.Is(err, ErrNoCompiler) || !strings.Contains(err.Error(), cc) {
			t.Errorf("CC=%s: %v", cc, err)
		}
	}
}

func TestProgramThatIsNotThereIsNotStarted(t *testing.T) {
	if _, err := Start(context.Background(), t.TempDir(), 1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
