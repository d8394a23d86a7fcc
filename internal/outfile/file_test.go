package outfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// text writes a text, as Write wants it.
func text(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	realtest.Must(t, err)
	return string(b)
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	fi, err := os.Lstat(path)
	realtest.Must(t, err)
	return fi.Mode()
}

// only checks which names a folder has: no temporary one is left.
func only(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	realtest.Must(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the folder has %v, want %v", got, want)
	}
}

func TestCreateIsThereAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	f, err := Create(path, Options{})
	realtest.Must(t, err)
	if m := mode(t, path); m != 0o600 {
		t.Errorf("mode %v", m)
	}
	realtest.Must(t, text("new")(f))
	realtest.Must(t, f.Close())
	if got := content(t, path); got != "new" {
		t.Errorf("%q", got)
	}
	if _, err := Create(path, Options{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second one: %v", err)
	}
}

func TestForceReplacesTheName(t *testing.T) {
	dir := t.TempDir()
	path, second := filepath.Join(dir, "x"), filepath.Join(dir, "y")
	realtest.Must(t, os.WriteFile(path, []byte("old"), 0o644))
	realtest.Must(t, os.Link(path, second))
	f, err := Create(path, Options{Force: true})
	realtest.Must(t, err)
	realtest.Must(t, f.Close())
	if got := content(t, second); got != "old" {
		t.Errorf("the file itself was written to: %q", got)
	}
	if content(t, path) != "" || mode(t, path) != 0o600 {
		t.Errorf("%q, mode %v", content(t, path), mode(t, path))
	}
	only(t, dir, "x", "y")
}

func TestFinishReplacesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	f, err := Begin(path, Options{})
	realtest.Must(t, err)
	realtest.Must(t, text("ours")(f))
	realtest.Must(t, os.WriteFile(path, []byte("theirs"), 0o600)) // meanwhile
	if err := f.Finish(); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v", err)
	}
	if got := content(t, path); got != "theirs" {
		t.Errorf("%q", got)
	}
	only(t, dir, "x")
}

func TestFailedWriteLeavesWhatWas(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	realtest.Must(t, os.WriteFile(path, []byte("old"), 0o600))
	failed := errors.New("full")
	err := Write(path, Options{Force: true}, func(w io.Writer) error { return errors.Join(text("half")(w), failed) })
	if !errors.Is(err, failed) || content(t, path) != "old" {
		t.Errorf("%v, %q", err, content(t, path))
	}
	realtest.Must(t, Write(path, Options{Force: true}, text("whole")))
	if got := content(t, path); got != "whole" {
		t.Errorf("%q", got)
	}
	only(t, dir, "x")
}

func TestAbandonLeavesWhatIsAnothers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	f, err := Create(path, Options{})
	realtest.Must(t, err)
	realtest.Must(t, os.Rename(path, path+".moved"))
	realtest.Must(t, os.WriteFile(path, []byte("theirs"), 0o600))
	realtest.Must(t, f.Abandon())
	only(t, dir, "x", "x.moved")

	f, err = Create(filepath.Join(dir, "y"), Options{})
	realtest.Must(t, err)
	realtest.Must(t, f.Close())
	realtest.Must(t, f.Remove())
	realtest.Must(t, f.Remove()) // once is enough
	only(t, dir, "x", "x.moved")
}

func TestReopenIsTheSameFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	f, err := Create(path, Options{})
	realtest.Must(t, err)
	realtest.Must(t, text("ours")(f))
	realtest.Must(t, f.Close())
	again, err := f.Reopen()
	realtest.Must(t, err)
	b, err := io.ReadAll(again)
	realtest.Must(t, errors.Join(err, again.Close()))
	if string(b) != "ours" {
		t.Errorf("%q", b)
	}
	realtest.Must(t, Write(path, Options{Force: true}, text("theirs")))
	if again, err := f.Reopen(); err == nil {
		t.Errorf("another file was opened: %v", again.Close())
	}
}

// TestNumbers: each of many at once gets a number of its own, and nothing is lost.
func TestNumbers(t *testing.T) {
	dir := t.TempDir()
	const writers, each = 8, 25
	name := func(n int) string { return fmt.Sprintf("slow-%d", n) }
	realtest.Must(t, os.WriteFile(filepath.Join(dir, name(1)), []byte("there"), 0o600))
	realtest.Must(t, os.WriteFile(filepath.Join(dir, name(3)), []byte("there"), 0o600))
	var wg sync.WaitGroup
	got := make([][]int, writers)
	for k := range writers {
		wg.Go(func() {
			for i := range each {
				d, err := OpenFolder(dir)
				if err != nil {
					t.Error(err)
					return
				}
				f, err := d.BeginNumbered("slow-1", 0)
				if err != nil {
					t.Error(err)
					return
				}
				fmt.Fprintf(f, "%d %d", k, i)
				n, err := f.FinishNumbered(1, name, nil)
				if err != nil {
					t.Error(err)
				}
				if f.Name() != filepath.Join(dir, name(n)) {
					t.Errorf("number %d is %s", n, f.Name())
				}
				got[k] = append(got[k], n)
			}
		})
	}
	wg.Wait()
	for k := range got {
		for i, n := range got[k] {
			if c := content(t, filepath.Join(dir, name(n))); c != fmt.Sprintf("%d %d", k, i) {
				t.Errorf("number %d has %q, not what writer %d put there", n, c, k)
			}
		}
	}
	if c := content(t, filepath.Join(dir, name(3))); c != "there" {
		t.Errorf("what was there is %q", c)
	}
	if n := len(names(t, dir)); n != writers*each+2 {
		t.Errorf("%d files", n)
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	d, err := OpenFolder(dir)
	realtest.Must(t, err)
	list, err := d.Names()
	realtest.Must(t, errors.Join(err, d.Close()))
	return list
}

// TestNumbersReplaceWhatWasThere: with force old numbers are used again, but not those that somebody has used again meanwhile.
func TestNumbersReplaceWhatWasThere(t *testing.T) {
	dir := t.TempDir()
	name := func(n int) string { return fmt.Sprintf("slow-%d", n) }
	old := map[string]fs.FileInfo{}
	for n := 1; n <= 2; n++ {
		path := filepath.Join(dir, name(n))
		realtest.Must(t, os.WriteFile(path, []byte("old"), 0o600))
		fi, err := os.Lstat(path)
		realtest.Must(t, err)
		old[name(n)] = fi
	}
	dump := func(s string) int {
		d, err := OpenFolder(dir)
		realtest.Must(t, err)
		f, err := d.BeginNumbered("slow-1", 0)
		realtest.Must(t, err)
		realtest.Must(t, text(s)(f))
		n, err := f.FinishNumbered(1, name, old)
		realtest.Must(t, err)
		return n
	}
	for k, want := range []int{1, 2, 3} { // as two recorders that both know the same old files would
		if n := dump(fmt.Sprint("new ", k)); n != want {
			t.Errorf("number %d, want %d", n, want)
		}
	}
	for n := 1; n <= 3; n++ {
		if c := content(t, filepath.Join(dir, name(n))); c != fmt.Sprint("new ", n-1) {
			t.Errorf("%s has %q", name(n), c)
		}
	}
	only(t, dir, "slow-1", "slow-2", "slow-3")
}

func TestFolders(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		files, want fs.FileMode
	}{{0, 0o700}, {0o600, 0o700}, {0o640, 0o750}, {0o644, 0o755}, {0o660, 0o770}} {
		path := filepath.Join(dir, fmt.Sprintf("a-%o", test.files), "b")
		d, err := MakeFolders(path, FolderMode(test.files))
		realtest.Must(t, err)
		realtest.Must(t, d.Close())
		for _, at := range []string{path, filepath.Dir(path)} {
			if m := mode(t, at); m != fs.ModeDir|test.want {
				t.Errorf("for files of mode %o: %s has %v, want %o", test.files, at, m, test.want)
			}
		}
	}
	for _, path := range []string{"", ".", "/", "a/..", dir + "/"} {
		if _, err := Create(path, Options{Force: true}); err == nil {
			t.Errorf("%q was made", path)
		}
	}
	if _, err := Create(dir, Options{Force: true}); !errors.Is(err, ErrFolder) {
		t.Errorf("a folder: %v", err)
	}
	if _, err := Create(filepath.Join(dir, "no", "x"), Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that isn't there: %v", err)
	}
	realtest.Must(t, CheckFolder(filepath.Join(dir, "new")))
	realtest.Must(t, Check(filepath.Join(dir, "x"), Options{}))
}
