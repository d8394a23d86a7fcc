package runtimedir

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// asStranger runs Own as a user who isn't root, with variables set, and returns what it says: the folder, or the error.
func asStranger(t *testing.T, env ...string) string {
	t.Helper()
	cmd := realtest.AsStranger(t, "TestOwnOfAnotherUser", "own")
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for s := bufio.NewScanner(strings.NewReader(string(out))); s.Scan(); {
		if said, ok := strings.CutPrefix(s.Text(), "own: "); ok {
			return said
		}
	}
	t.Fatalf("no answer: %s", out)
	return ""
}

// TestOwnOfAnotherUser: the folder is where nobody else can have made it, or there is none.
func TestOwnOfAnotherUser(t *testing.T) {
	if os.Getenv("CALLREEL_TEST_ROLE") == "own" {
		path, err := Own()
		if err != nil {
			path = "error " + strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		fmt.Printf("own: %s\n", path)
		return
	}
	realtest.Need(t, realtest.Superuser)
	const id = "54321"
	shared := func(t *testing.T) string { // as /tmp is
		dir := realtest.SharedFolder(t)
		if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	strangers := func(t *testing.T, path string, mode os.FileMode) {
		t.Helper()
		if err := os.Mkdir(path, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, realtest.Stranger, realtest.Stranger); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		prepare func(t *testing.T, run, tmp string)
		want    string // RUN or TMP stands for the folder of either, "error" for none
	}{
		"in the runtime folder":             {func(*testing.T, string, string) {}, "RUN"},
		"there already":                     {func(t *testing.T, run, _ string) { strangers(t, run+"/callreel", 0o700) }, "RUN"},
		"readable by others":                {func(t *testing.T, run, _ string) { strangers(t, run+"/callreel", 0o750) }, "TMP"},
		"runtime folder of somebody else":   {func(t *testing.T, run, _ string) { chown(t, run, 1) }, "TMP"},
		"runtime folder that all can write": {func(t *testing.T, run, _ string) { chmod(t, run, 0o777) }, "TMP"},
		"runtime folder gone":               {func(t *testing.T, run, _ string) { remove(t, run) }, "TMP"},
		"taken by another user":             {func(t *testing.T, run, tmp string) { remove(t, run); mkdir(t, tmp+"/callreel-"+id) }, "error"},
		"a link planted by another user":    {func(t *testing.T, run, tmp string) { remove(t, run); link(t, run+"x", tmp+"/callreel-"+id) }, "error"},
		"a link to a folder of one's own": {func(t *testing.T, run, tmp string) {
			remove(t, run)
			strangers(t, run+"x", 0o700)
			link(t, run+"x", tmp+"/callreel-"+id)
		}, "error"},
		"a file":                              {func(t *testing.T, run, tmp string) { remove(t, run); file(t, tmp+"/callreel-"+id) }, "error"},
		"all can rename what is in tmp":       {func(t *testing.T, run, tmp string) { remove(t, run); chmod(t, tmp, 0o777) }, "error"},
		"tmp of somebody else, who is no one": {func(t *testing.T, run, tmp string) { remove(t, run); chown(t, tmp, 1) }, "error"},
	}
	if _, err := os.Stat("/run/user/" + id); err == nil {
		t.Fatalf("user %s, whom these tests make, exists", id)
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tmp, run := shared(t), filepath.Join(realtest.SharedFolder(t), "run")
			strangers(t, run, 0o700)
			test.prepare(t, run, tmp)
			got := asStranger(t, "XDG_RUNTIME_DIR="+run, "TMPDIR="+tmp)
			want := strings.NewReplacer("RUN", run+"/callreel", "TMP", tmp+"/callreel-"+id).Replace(test.want)
			if !strings.HasPrefix(got, want) {
				t.Errorf("%s, want %s", got, want)
			}
			if !strings.HasPrefix(got, "error") {
				fi, err := os.Lstat(got)
				if err != nil || fi.Mode() != os.ModeDir|0o700 {
					t.Errorf("%v %v", fi.Mode(), err)
				}
				if err := os.RemoveAll(got); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestOwnOfRoot: root's doesn't go by what the environment says.
func TestOwnOfRoot(t *testing.T) {
	realtest.Need(t, realtest.Superuser)
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	path, err := Own()
	if err != nil {
		t.Fatal(err)
	}
	if path != "/run/callreel" {
		t.Errorf("%s", path)
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	realtest.Must(t, os.Chmod(path, mode))
}
func chown(t *testing.T, path string, uid int) {
	t.Helper()
	realtest.Must(t, os.Chown(path, uid, uid))
}
func remove(t *testing.T, path string)   { t.Helper(); realtest.Must(t, os.RemoveAll(path)) }
func mkdir(t *testing.T, path string)    { t.Helper(); realtest.Must(t, os.Mkdir(path, 0o700)) }
func link(t *testing.T, to, path string) { t.Helper(); realtest.Must(t, os.Symlink(to, path)) }
func file(t *testing.T, path string)     { t.Helper(); realtest.Must(t, os.WriteFile(path, nil, 0o600)) }
