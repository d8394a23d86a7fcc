//go:build unix

package ownfolder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// folder makes a folder with that mode, whatever the umask.
func folder(t *testing.T, mode os.FileMode, parts ...string) string {
	t.Helper()
	dir := filepath.Join(parts...)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, mode); err != nil {
		t.Fatal(err)
	}
	return dir
}

func link(t *testing.T, to, at string) string {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
	return at
}

func TestFoldersThatOthersCanChangeAreRefused(t *testing.T) {
	top := t.TempDir()
	own := folder(t, 0o755, top, "own")
	open := folder(t, 0o777, top, "open")
	sticky := folder(t, 0o777|os.ModeSticky, top, "sticky")
	for _, k := range []struct{ dir, want string }{
		{own, ""},
		{filepath.Join(own, "not", "there"), ""},
		{open, "others can write"},
		{filepath.Join(open, "not", "there"), "others can write"},
		{folder(t, 0o700, open, "below"), "others can write"},
		{folder(t, 0o700, sticky, "below"), ""},
		{sticky, "others can write"}, // anybody may put something into it
		{link(t, own, filepath.Join(top, "to-own")), ""},
		{filepath.Join(link(t, "open", filepath.Join(top, "to-open")), "below"), "others can write"},
		{link(t, "round", filepath.Join(top, "round")), "symbolic links"},
	} {
		err := Check(k.dir)
		if (err == nil) != (k.want == "") || err != nil && !strings.Contains(err.Error(), k.want) {
			t.Errorf("%s: %v, want %q", k.dir, err, k.want)
		}
	}
	file := filepath.Join(own, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Check(filepath.Join(file, "below")); err == nil {
		t.Error("a folder below a file")
	}
}

func TestFoldersOfAnotherUserAreRefused(t *testing.T) {
	realtest.Need(t, realtest.Superuser)
	top := t.TempDir()
	theirs := folder(t, 0o755, top, "theirs")
	ours := folder(t, 0o755, theirs, "ours")
	planted := link(t, top, filepath.Join(folder(t, 0o777|os.ModeSticky, top, "tmp"), "planted"))
	if err := os.Chown(theirs, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if err := os.Lchown(planted, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{theirs, ours, filepath.Join(theirs, "none"), filepath.Join(planted, "x")} {
		if err := Check(dir); err == nil || !strings.Contains(err.Error(), "belongs to another user (12345") {
			t.Errorf("%s: %v", dir, err)
		}
	}
	// As after sudo -E: root takes its own folder.
	t.Setenv("XDG_CACHE_HOME", theirs)
	if dir, err := Cache(); err != nil || strings.HasPrefix(dir, theirs) {
		t.Errorf("the cache is in %s: %v", dir, err)
	}
	t.Setenv("XDG_CACHE_HOME", top)
	if dir, err := Cache(); err != nil || dir != filepath.Join(top, "callreel") {
		t.Errorf("the cache is in %s: %v", dir, err)
	}
}

func TestFilesThatOthersCanChangeAreNotTrusted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	trusted := func(mode os.FileMode) bool {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return Trusted(info) && Honest(path, info)
	}
	if !trusted(0o755) || trusted(0o757) || trusted(0o602) {
		t.Error("the mode does not tell")
	}
	if Trusted(nil) {
		t.Error("what is no file is trusted")
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(path, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		if trusted(0o600) || trusted(0o660) {
			t.Error("another user's file is trusted")
		}
	}
}
