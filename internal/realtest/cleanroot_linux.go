package realtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A Chroot is a small system of the distribution that this machine has, as it is after its installation: the essential
// packages, and man-db.
type Chroot struct {
	Folder string // where its / is
	t      testing.TB
}

// CleanRoot unpacks a new one, which is deleted with the test. It is made from the distribution's archive once and kept
// with the other things that tests build. It needs [CleanChroot].
func CleanRoot(t testing.TB) *Chroot {
	t.Helper()
	Need(t, CleanChroot)
	archive, err := rootArchive(t.Context())
	if err != nil {
		t.Fatalf("realtest: a clean chroot: %v", err)
	}
	r := &Chroot{Folder: SharedFolder(t), t: t}
	if out, err := exec.CommandContext(t.Context(), "tar", "--numeric-owner", "-xpf", archive, "-C", r.Folder).CombinedOutput(); err != nil {
		t.Fatalf("realtest: a clean chroot: tar: %v\n%s", err, out)
	}
	return r
}

// rootArchive is the packed system, which is made if it isn't there.
func rootArchive(ctx context.Context) (string, error) {
	suite, err := suiteName()
	if err != nil {
		return "", err
	}
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	archive := filepath.Join(cache, fmt.Sprintf("root-%s-%s.tar", suite, runtime.GOARCH))
	if _, err := os.Stat(archive); err == nil {
		return archive, nil
	}
	// The archive's servers may be slow, and may have a bad moment.
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	return archive, publish(archive, os.Link, func(temp string) error {
		args := []string{"--quiet", "--mode=root", "--variant=essential", "--include=man-db", "--format=tar", suite, temp}
		if server := packageServer(ctx, suite); server != "" {
			args = append(args, server)
		}
		for tries := 3; ; tries-- {
			out, err := exec.CommandContext(ctx, "mmdebstrap", args...).CombinedOutput()
			if err == nil || tries == 1 || ctx.Err() != nil {
				if err != nil {
					return fmt.Errorf("mmdebstrap: %w\n%s", err, out)
				}
				return nil
			}
		}
	})
}

// suiteName is the distribution's release by its name in the archive, such as bookworm (os-release(5)).
func suiteName() (string, error) {
	f, err := os.Open("/etc/os-release")
	if err != nil {
		return "", err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, found := strings.CutPrefix(lines.Text(), "VERSION_CODENAME="); found {
			return strings.Trim(name, `"`), nil
		}
	}
	return "", errors.New("/etc/os-release has no VERSION_CODENAME")
}

// packageServer is the server that this machine has packages of the suite from, or empty: mmdebstrap knows one.
func packageServer(ctx context.Context, suite string) string {
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(SITE) $(CODENAME) $(COMPONENT)", "Created-By: Packages").Output()
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 3 && f[1] == suite && f[2] == "main" {
			return f[0]
		}
	}
	return ""
}

// Run runs a program in it, with a /proc, a /run and process IDs of its own, and returns all it wrote. What it leaves running
// ends with it. The test fails if it does.
func (r *Chroot) Run(program string, args ...string) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*patience)
	defer cancel()
	const script = `mount -t proc proc "$1/proc" && mount -t tmpfs tmpfs "$1/run" && cd / && root=$1 && shift && exec chroot "$root" "$@"`
	cmd := exec.CommandContext(ctx, "unshare", append([]string{"--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh", r.Folder, program}, args...)...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"}
	ownThread(cmd)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("realtest: in a clean chroot: %s %q: %v\n%s", program, args, err, out)
	}
	return string(out)
}

// Files are all files and folders of it, by their paths, with kind, permissions and, of files, sizes.
func (r *Chroot) Files() map[string]string {
	r.t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(r.Folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		is := info.Mode().String()
		if info.Mode().IsRegular() {
			is += fmt.Sprintf(" %d bytes", info.Size())
		}
		files[strings.TrimPrefix(path, r.Folder)] = is
		return nil
	})
	if err != nil {
		r.t.Fatalf("realtest: a clean chroot: %v", err)
	}
	return files
}

// canMakeRoot says whether a system can be unpacked and run here.
func canMakeRoot() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: %s: this is user %d", ErrMissing, CleanChroot, os.Geteuid())
	}
	for _, name := range []string{"mmdebstrap", "unshare", "tar"} {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrMissing, CleanChroot, err)
		}
	}
	if out, err := exec.Command("unshare", "--mount", "--pid", "--fork", "--mount-proc", "true").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s: mounting: %w: %s", ErrMissing, CleanChroot, err, out)
	}
	return nil
}
