package sampler

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestJITMapNamesCodeByItsLastLine(t *testing.T) {
	var m jitMap
	m.add([]byte("1000 100 first\n0x1080 0x10 JS:*inner file.js:1:2 \r\nzz 10 no number\n2000 0 empty\n3000\n" +
		"fffffffffffffff0 20 wraps\n5000 10\t a tab\n1040 20 lat"))
	m.add([]byte("er\n4000 10 not ended"))
	for addr, want := range map[uint64]string{
		0xfff: "", 0x1000: "first", 0x103f: "first", 0x1040: "later", 0x105f: "later", 0x1060: "first",
		0x1080: "JS:*inner file.js:1:2", 0x1090: "first", 0x10ff: "first", 0x1100: "", 0x2000: "", 0x4000: "", 0x5001: "a tab",
	} {
		if got := m.find(addr); got != want {
			t.Errorf("%#x is %q, want %q", addr, got, want)
		}
	}
	m.add([]byte("\n1000 1000 all\n"))
	if got := m.find(0x1080); got != "all" || m.find(0x4000) != "not ended" {
		t.Errorf("after more lines: %q, %q", got, m.find(0x4000))
	}
}

// The pieces are checked against a search for the last line that holds an address.
func TestJITMapOfManyOverlapsIsLaidRight(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var m jitMap
		var text strings.Builder
		for k := range 60 {
			fmt.Fprintf(&text, "%x %x f%d\n", r.IntN(200), 1+r.IntN(60), k)
		}
		m.add([]byte(text.String()))
		for addr := range uint64(280) {
			want := ""
			for _, l := range m.lines {
				if addr >= l.start && addr < l.end {
					want = string(m.text[l.name : l.name+l.size])
				}
			}
			if got := m.find(addr); got != want {
				t.Fatalf("%#x is %q, want %q in\n%s", addr, got, want, text.String())
			}
		}
	}
}

func FuzzJITMap(f *testing.F) {
	f.Add([]byte("1000 100 first\n1040 20 later\n"), uint64(0x1040))
	f.Fuzz(func(t *testing.T, text []byte, addr uint64) {
		var m jitMap
		m.add(text)
		if name := m.find(addr); len(name) > maxJITName || name != "" && !strings.Contains(string(text), name) {
			t.Errorf("%q", name)
		}
	})
}

func TestJITMapsOfOthersAreNotBelieved(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "map")
	long := time.Now().Add(-time.Hour)
	for name, make := range map[string]func() error{
		"open to all": func() error { return os.Chmod(path, 0o646) },
		"two names":   func() error { return os.Link(path, path+".2") },
		"a pipe": func() error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return unix.Mkfifo(path, 0o600)
		},
		"old": func() error { return os.Chtimes(path, long, long.Add(-time.Hour)) },
	} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("1000 100 f\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		check := func() error {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			return trustJITMap(info, os.Geteuid(), long)
		}
		if err := check(); err != nil {
			t.Fatalf("before it is %s: %v", name, err)
		}
		if err := make(); err != nil {
			t.Fatal(err)
		}
		if check() == nil {
			t.Errorf("%s: believed", name)
		}
	}
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if trustJITMap(info, os.Geteuid(), long) == nil {
		t.Error("a folder: believed")
	}
}

func TestNoLinkLeadsOutOfARootFolder(t *testing.T) {
	dir := t.TempDir()
	inside, err := filepath.Rel("/", dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "map"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"link": "map", "magic": "/proc/self/fd"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, ok := range map[string]bool{"map": true, "link": false, "magic/0": false, "none": false} {
		f, err := openBelowRoot(os.Getpid(), filepath.Join(inside, name))
		if (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			_ = f.Close() // only opened
		}
	}
}

// Who waits at a FIFO for its reader doesn't notice that somebody looks for names there.
func TestAFIFOInThePlaceOfNamesIsNotOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "perf-1.map")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	writer := make(chan error, 1)
	go func() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0) // which waits for a reader
		if err == nil {
			err = f.Close()
		}
		writer <- err
	}()
	for range 100 {
		if f, err := openBelowRoot(os.Getpid(), strings.TrimPrefix(path, "/")); !errors.Is(err, errJITFile) {
			t.Fatalf("%v, %v", f, err)
		}
		time.Sleep(time.Millisecond) // so that the writer has its turn
	}
	select {
	case err := <-writer:
		t.Errorf("the FIFO was opened (%v)", err)
	default:
		reader, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		<-writer
		reader.Close()
	}
}
