package mapfault

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAFileThatIsCutShortIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, make([]byte, 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := unix.Mmap(int(f.Fd()), 0, 8192, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(b)
	changed := errors.New("changed")
	read := func() error {
		return Catch(func() error {
			if b[5000] != 0 {
				return errors.New("not what was written")
			}
			return nil
		}, func(uintptr) error { return changed })
	}
	if err := read(); err != nil {
		t.Errorf("while it is whole: %v", err)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if err := read(); err != changed {
		t.Errorf("cut short: %v", err)
	}
}

func TestOtherPanicsGoOn(t *testing.T) {
	none := func(uintptr) error { return errors.New("a fault") }
	for name, do := range map[string]func() error{
		"a word":    func() error { panic("word") },
		"an index":  func() error { var none []int; _ = none[len(none)]; return nil },
		"a pointer": func() error { var p *[8]int; p[1] = 2; return nil },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			err := Catch(do, none)
			t.Errorf("%s: %v", name, err)
		}()
	}
}
