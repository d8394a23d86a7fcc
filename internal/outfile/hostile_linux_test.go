package outfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/realtest"
)

const untouched = "nobody else may write here"

// victim makes a file of root's.
func victim(t *testing.T) string {
	t.Helper()
	path := filepath.Join(realtest.SharedFolder(t), "victim")
	realtest.Must(t, os.WriteFile(path, []byte(untouched), 0o600))
	return path
}

// unharmed checks that a victim is as it was, and that nothing was made beside it.
func unharmed(t *testing.T, path string) {
	t.Helper()
	if got := content(t, path); got != untouched {
		t.Errorf("the victim's file has %q", got)
	}
	if mode(t, path) != 0o600 {
		t.Errorf("the victim's file has mode %v", mode(t, path))
	}
	only(t, filepath.Dir(path), "victim")
}

// strangersLink makes a symbolic link that belongs to another user.
func strangersLink(t *testing.T, to, path string) {
	t.Helper()
	realtest.Must(t, os.Symlink(to, path))
	realtest.Must(t, os.Lchown(path, realtest.Stranger, realtest.Stranger))
}

// make makes a file in the way that is asked for.
func makeIn(path string, opt Options, pending bool) error {
	open := Create
	if pending {
		open = Begin
	}
	f, err := open(path, opt)
	if err != nil {
		return err
	}
	if _, err := f.WriteString("written by root"); err != nil {
		return err
	}
	if pending {
		return f.Finish()
	}
	return f.Close()
}

// TestPlantedLinks: links that another user has put where a file is to be lead nowhere.
func TestPlantedLinks(t *testing.T) {
	for _, pending := range []bool{false, true} {
		for _, opt := range []Options{{}, {Force: true}, {Into: true}, {Force: true, Into: true}} {
			t.Run(fmt.Sprintf("pending %v, %+v", pending, opt), func(t *testing.T) {
				dir, secret := realtest.StrangersFolder(t), victim(t)

				name := filepath.Join(dir, "x")
				strangersLink(t, secret, name)
				err := makeIn(name, opt, pending)
				unharmed(t, secret)
				switch {
				case !opt.Force && !errors.Is(err, fs.ErrExist):
					t.Errorf("the link's name: %v", err)
				case opt.Force && (err != nil || !mode(t, name).IsRegular()):
					t.Errorf("the link's name with force: %v, %v", err, mode(t, name))
				}

				name = filepath.Join(dir, "y")
				strangersLink(t, filepath.Join(filepath.Dir(secret), "new"), name) // leads to nothing yet
				_ = makeIn(name, opt, pending)
				unharmed(t, secret)

				strangersLink(t, filepath.Dir(secret), filepath.Join(dir, "folder"))
				for _, path := range []string{"folder/new", "folder/victim", "folder/../" + filepath.Base(filepath.Dir(secret)) + "/new"} {
					if err := makeIn(filepath.Join(dir, "folder")+strings.TrimPrefix(path, "folder"), opt, pending); !errors.Is(err, ErrOthers) {
						t.Errorf("%s: %v", path, err)
					}
				}
				unharmed(t, secret)

				if d, err := MakeFolder(filepath.Join(dir, "folder"), 0o755); !errors.Is(err, ErrOthers) {
					t.Errorf("%v %v", d, err)
				}
				if err := CheckFolder(filepath.Join(dir, "folder")); !errors.Is(err, ErrOthers) {
					t.Errorf("%v", err)
				}
			})
		}
	}
}

// TestOwnLinks: those of one's own lead on, as they do to everything else.
func TestOwnLinks(t *testing.T) {
	dir := t.TempDir()
	realtest.Must(t, os.MkdirAll(filepath.Join(dir, "disk/reels"), 0o755))
	realtest.Must(t, os.Symlink(filepath.Join(dir, "disk"), filepath.Join(dir, "absolute")))
	realtest.Must(t, os.Symlink("absolute/reels", filepath.Join(dir, "relative")))
	realtest.Must(t, os.Symlink("../../loop", filepath.Join(dir, "disk/reels/loop")))
	realtest.Must(t, os.Symlink("disk/reels/loop", filepath.Join(dir, "loop")))
	realtest.Must(t, makeIn(dir+"/relative/../reels/./x", Options{}, true))
	if got := content(t, filepath.Join(dir, "disk/reels/x")); got != "written by root" {
		t.Errorf("%q", got)
	}
	if err := makeIn(filepath.Join(dir, "loop/x"), Options{}, true); !errors.Is(err, unix.ELOOP) {
		t.Errorf("%v", err)
	}
	// What has the name itself is replaced, not what it leads to.
	realtest.Must(t, os.Symlink("disk/reels/x", filepath.Join(dir, "latest")))
	realtest.Must(t, Write(filepath.Join(dir, "latest"), Options{Force: true}, text("new")))
	if content(t, filepath.Join(dir, "disk/reels/x")) != "written by root" || !mode(t, filepath.Join(dir, "latest")).IsRegular() {
		t.Error("the link was followed")
	}
}

// TestOthersFiles: in a folder that several users can write in, what belongs to another isn't replaced, nor written into.
func TestOthersFiles(t *testing.T) {
	realtest.Need(t, realtest.Superuser)
	shared := realtest.SharedFolder(t)
	realtest.Must(t, os.Chmod(shared, 0o777|fs.ModeSticky))
	name := filepath.Join(shared, "x")
	realtest.Must(t, os.WriteFile(name, []byte("theirs"), 0o666))
	realtest.Must(t, os.Chown(name, realtest.Stranger, realtest.Stranger))
	for _, pending := range []bool{false, true} {
		if err := makeIn(name, Options{Force: true}, pending); !errors.Is(err, ErrOthers) {
			t.Errorf("%v", err)
		}
		if err := Check(name, Options{Force: true}); !errors.Is(err, ErrOthers) {
			t.Errorf("%v", err)
		}
	}
	if got := content(t, name); got != "theirs" {
		t.Errorf("%q", got)
	}
	pipe := filepath.Join(shared, "pipe")
	realtest.Must(t, unix.Mkfifo(pipe, 0o666))
	realtest.Must(t, os.Lchown(pipe, realtest.Stranger, realtest.Stranger))
	for _, opt := range []Options{{Into: true}, {Force: true}} {
		if err := makeIn(pipe, opt, false); !errors.Is(err, ErrOthers) { // which would wait for a reader if it opened it
			t.Errorf("%v", err)
		}
	}
}

// TestInto: pipes, devices and descriptors are written into where that is asked for.
func TestInto(t *testing.T) {
	realtest.Must(t, makeIn("/dev/null", Options{Into: true}, true))
	realtest.Must(t, makeIn("/dev/null", Options{Force: true}, false))
	if m := mode(t, "/dev/null"); m&fs.ModeCharDevice == 0 {
		t.Fatalf("/dev/null is %v", m)
	}
	if err := makeIn("/dev/null", Options{}, false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v", err)
	}
	r, w, err := os.Pipe()
	realtest.Must(t, err)
	defer r.Close()
	realtest.Must(t, makeIn(fmt.Sprintf("/dev/fd/%d", w.Fd()), Options{Into: true}, true))
	realtest.Must(t, w.Close())
	var got bytes.Buffer
	if _, err := got.ReadFrom(r); err != nil || got.String() != "written by root" {
		t.Errorf("%q, %v", got.String(), err)
	}
	// A descriptor of a file goes on where it is.
	path := filepath.Join(t.TempDir(), "log")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	realtest.Must(t, err)
	defer f.Close()
	realtest.Must(t, text("before, ")(f))
	realtest.Must(t, makeIn(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), Options{Into: true}, true))
	realtest.Must(t, text(", after")(f))
	if got := content(t, path); got != "before, written by root, after" {
		t.Errorf("%q", got)
	}
}

// TestModes: the default is for the owner alone whatever the umask is, and a mode that is asked for isn't changed by it.
func TestModes(t *testing.T) {
	dir := t.TempDir()
	for _, umask := range []int{0, 0o022, 0o077} {
		before := unix.Umask(umask)
		for _, test := range []struct{ ask, want fs.FileMode }{{0, 0o600}, {0o640, 0o640}, {0o666, 0o666}} {
			path := filepath.Join(dir, fmt.Sprintf("%o-%o", umask, test.ask))
			err := Write(path, Options{Mode: test.ask}, text(""))
			d, derr := MakeFolder(path+"-folder", FolderMode(test.ask))
			if derr == nil {
				derr = d.Close()
			}
			if err = errors.Join(err, derr); err != nil {
				t.Error(err)
			} else if m, fm := mode(t, path), mode(t, path+"-folder"); m != test.want || fm.Perm() != FolderMode(test.ask) {
				t.Errorf("umask %o: mode %v, want %v; folder %v", umask, m, test.want, fm)
			}
		}
		unix.Umask(before)
	}
}

// TestRenameByLink: without RENAME_NOREPLACE nothing is replaced either.
func TestRenameByLink(t *testing.T) {
	dir := t.TempDir()
	d, err := OpenFolder(dir)
	realtest.Must(t, err)
	defer d.Close()
	for _, name := range []string{"a", "b", "c"} {
		realtest.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600))
	}
	if err := d.renameByLink("a", "b"); !errors.Is(err, fs.ErrExist) || content(t, filepath.Join(dir, "b")) != "b" {
		t.Errorf("%v", err)
	}
	realtest.Must(t, d.renameByLink("c", "d"))
	only(t, dir, "a", "b", "d")
}

// attack runs a stranger that does something to a folder of its own over and over.
func attack(t *testing.T, role, dir, secret string) *exec.Cmd {
	t.Helper()
	cmd := realtest.AsStranger(t, "TestRaces", role)
	cmd.Env = append(cmd.Env, "CALLREEL_TEST_FOLDER="+dir, "CALLREEL_TEST_VICTIM="+secret)
	realtest.Must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

// attacker is what runs in the stranger. It ends when it is killed.
func attacker(role, dir, secret string) {
	name := filepath.Join(dir, "x")
	for {
		switch role {
		case "file": // the name is nothing, a link to the file, a file
			_ = os.Symlink(secret, name+".new")
			_ = os.Rename(name+".new", name)
			_ = os.Remove(name)
		case "folder": // the folder is one, or a link to the file's
			_ = os.Mkdir(filepath.Join(dir, "f"), 0o777)
			_ = os.Chmod(filepath.Join(dir, "f"), 0o777)
			_ = os.Rename(filepath.Join(dir, "f"), filepath.Join(dir, "g"))
			_ = os.Symlink(filepath.Dir(secret), filepath.Join(dir, "f"))
			_ = os.Remove(filepath.Join(dir, "f"))
			_ = os.Rename(filepath.Join(dir, "g"), filepath.Join(dir, "f"))
		case "temporary": // whatever appears becomes a link
			entries, _ := os.ReadDir(dir)
			for _, e := range entries {
				at := filepath.Join(dir, e.Name())
				_ = os.Remove(at)
				_ = os.Symlink(secret, at)
			}
		}
	}
}

// TestRaces: a user who changes names as fast as can be gets nothing written, made or removed elsewhere.
func TestRaces(t *testing.T) {
	if role := os.Getenv("CALLREEL_TEST_ROLE"); role != "" {
		attacker(role, os.Getenv("CALLREEL_TEST_FOLDER"), os.Getenv("CALLREEL_TEST_VICTIM"))
	}
	for role, in := range map[string]string{"file": "x", "folder": "f/victim", "temporary": "x"} {
		t.Run(role, func(t *testing.T) {
			dir, secret := realtest.StrangersFolder(t), victim(t)
			attack(t, role, dir, secret)
			path := filepath.Join(dir, in)
			done, end := 0, time.Now().Add(2*time.Second)
			for k := 0; k < 300 || time.Now().Before(end); k++ {
				opt := Options{Force: k%2 == 0, Into: k%3 == 0}
				if makeIn(path, opt, k%4 < 2) == nil {
					done++
				}
				if f, err := Create(path, opt); err == nil {
					if again, err := f.Reopen(); err == nil {
						if fi, err := again.Stat(); err != nil || !os.SameFile(fi, f.info) {
							t.Errorf("another file was opened: %v", err)
						}
						_ = again.Close()
					}
					_ = f.Abandon()
				}
			}
			unharmed(t, secret)
			t.Logf("%d were made", done)
		})
	}
}
