package main

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/realtest"
)

// said runs a program and returns what it wrote.
func said(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
	return string(out)
}

// notTheirs are the places where dpkg and man keep what they know of packages.
func notTheirs(path string) bool {
	for _, folder := range []string{"/var/lib/dpkg", "/var/log", "/var/cache/man", "/var/cache/ldconfig", "/tmp", "/proc"} {
		if path == folder || strings.HasPrefix(path, folder+"/") {
			return true
		}
	}
	return false
}

func TestDebianPackageIsInstalledWorksAndGoes(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	root := realtest.CleanRoot(t)
	name := theRelease(t, ".deb")
	deb, err := os.ReadFile(name)
	if err == nil {
		err = errors.Join(os.WriteFile(filepath.Join(root.Folder, "tmp", "callreel.deb"), deb, 0o644), os.MkdirAll(filepath.Join(root.Folder, "root"), 0o700))
	}
	if err != nil {
		t.Fatal(err)
	}
	before := root.Files()

	root.Run("dpkg", "--install", "/tmp/callreel.deb")
	if out := root.Run("callreel", "doctor"); !strings.Contains(out, "Recording works here.") {
		t.Error(out)
	}
	if out := root.Run("man", "-w", "callreel-record"); out != "/usr/share/man/man1/callreel-record.1.gz\n" {
		t.Errorf("%q", out)
	}
	if out := root.Run("man", "--warnings", "callreel-record"); !strings.Contains(out, "callreel-record - Record every call of a process") || strings.Contains(out, "warning") {
		t.Error(out)
	}
	if out := root.Run("dpkg-query", "-W", "-f", "${Version} ${Status}", "callreel"); out != packaged+" install ok installed" {
		t.Errorf("%q", out)
	}
	if out := root.Run("dpkg", "--verify", "callreel"); out != "" {
		t.Errorf("what is installed isn't what was packed: %s", out)
	}
	added := 0
	for path := range root.Files() {
		if _, was := before[path]; !was && !notTheirs(path) {
			added++
			if path != "/usr/bin/callreel" && !strings.HasPrefix(path, "/usr/share/") {
				t.Errorf("%s came with it", path)
			}
		}
	}
	if added < 30 {
		t.Errorf("%d files and folders were installed", added)
	}

	root.Run("dpkg", "--purge", "callreel")
	after := root.Files()
	maps.DeleteFunc(before, func(path, _ string) bool { return notTheirs(path) })
	for path, is := range after {
		if strings.Contains(path, "callreel") && path != "/tmp/callreel.deb" && !strings.HasPrefix(path, "/var/cache/man/") {
			t.Errorf("%s is still there", path)
		}
		if was := before[path]; was != is && !notTheirs(path) {
			t.Errorf("%s: %q before, %q after", path, was, is)
		}
		delete(before, path)
	}
	for path := range before {
		t.Errorf("%s has gone with it", path)
	}
}

// Overrides say what lintian is wrong about, and why; one that says nothing has to go, which is an information only.
func TestLintianFindsNothing(t *testing.T) {
	realtest.Need(t, realtest.Lintian)
	// The spelling of a binary is that of names in it: halfs, upTo.
	out, err := exec.Command("lintian", "--allow-root", "--info", "--display-info", "--fail-on", "error,warning",
		"--suppress-tags", "spelling-error-in-binary", theRelease(t, ".deb")).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestRPMHasWhatTheDebianPackageHas(t *testing.T) {
	realtest.Need(t, realtest.RPM, "dpkg-deb")
	rpm, deb := theRelease(t, ".rpm"), theRelease(t, ".deb")
	if out := said(t, "rpm", "--checksig", "--nosignature", rpm); !strings.HasSuffix(strings.TrimSpace(out), "digests OK") {
		t.Error(out)
	}
	const fields = "%{name} %{version}-%{release} %{arch} %{buildhost} %{buildtime} %{license}"
	if out := said(t, "rpm", "--query", "--package", "--queryformat", fields, rpm); out != "callreel "+packaged+"-1 x86_64 reproducible "+epoch+" none chosen yet" {
		t.Errorf("%q", out)
	}
	if out := said(t, "rpm", "--query", "--package", "--requires", rpm); strings.Contains(out, "/") || strings.Contains(out, "lib") {
		t.Errorf("it wants %s", out)
	}
	var wanted, got []string
	for line := range strings.Lines(said(t, "dpkg-deb", "--contents", deb)) {
		f := strings.Fields(line)
		path := strings.TrimPrefix(f[5], ".")
		if strings.HasSuffix(path, "/") || strings.Contains(path, "/lintian/") || strings.HasSuffix(path, "changelog.gz") {
			continue
		}
		if f[1] != "root/root" {
			t.Error(line)
		}
		wanted = append(wanted, strings.Replace(path, "/vendor-completions/", "/site-functions/", 1))
	}
	for line := range strings.Lines(said(t, "rpm", "--query", "--package", "--queryformat", "[%{filemodes:perms} %{fileusername} %{filenames}\n]", rpm)) {
		f := strings.Fields(line)
		if f[1] != "root" {
			t.Error(line)
		}
		if !strings.HasPrefix(f[0], "d") {
			got = append(got, f[2])
		} else if !strings.HasPrefix(f[2], "/usr/share/doc/callreel") {
			t.Errorf("it owns %s, which other packages have, too", f[2])
		}
	}
	slices.Sort(wanted)
	slices.Sort(got)
	if len(got) < 30 || !slices.Equal(got, wanted) {
		t.Errorf("the .rpm has\n%q, the .deb\n%q", got, wanted)
	}
}

// rpm itself installs it, into an empty folder, finds it whole, and removes it.
func TestRPMIsInstalledAndGoes(t *testing.T) {
	realtest.Need(t, realtest.RPM, realtest.Superuser)
	root := t.TempDir()
	rpm := func(args ...string) {
		t.Helper()
		said(t, "rpm", append([]string{"--root", root}, args...)...)
	}
	rpm("--initdb")
	rpm("--install", "--nosignature", theRelease(t, ".rpm"))
	rpm("--verify", "callreel")
	if out := said(t, filepath.Join(root, "usr/bin/callreel"), "--version"); out != "callreel "+described+"\n" {
		t.Errorf("%q", out)
	}
	rpm("--erase", "callreel")
	if err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if strings.Contains(strings.TrimPrefix(path, root), "callreel") {
			t.Errorf("%s is still there", path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// Neither the umask, nor the place, nor the time zone, nor when it was made shows in the files.
func TestTwoRunsGiveTheSameBytes(t *testing.T) {
	first := filepath.Dir(theRelease(t, ".deb"))
	t.Setenv("TZ", "Asia/Tokyo")
	t.Setenv("LC_ALL", "C")
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("GOFLAGS", "-buildvcs=auto")
	old := unix.Umask(0o077)
	second, err := makeRelease(t.Context())
	unix.Umask(old)
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(second)
	names, err := os.ReadDir(first)
	if err != nil || len(names) != 5 {
		t.Fatalf("%v, %v", names, err)
	}
	for _, name := range names {
		a, errA := os.ReadFile(filepath.Join(first, name.Name()))
		b, errB := os.ReadFile(filepath.Join(second, name.Name()))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs (%d and %d bytes; %v)", name.Name(), len(a), len(b), errors.Join(errA, errB))
		}
	}
}
