package object

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// separated is a program with its debug information in a file of its own.
type separated struct {
	dir, program, debug string
	id                  string
}

// separate builds a program whose .gnu_debuglink names program.debug, which is in a
// folder where no rule finds it.
func separate(t *testing.T, flags ...string) separated {
	t.Helper()
	realtest.Need(t, realtest.GCC, realtest.Objcopy)
	s := separated{dir: t.TempDir()}
	built := compile(t, append([]string{"-g"}, flags...)...)
	s.program, s.debug = filepath.Join(s.dir, "bin", "program"), filepath.Join(s.dir, "away", "program.debug")
	for _, path := range []string{s.program, s.debug} {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	tool(t, realtest.Objcopy, "--only-keep-debug", built, s.debug)
	tool(t, realtest.Objcopy, "--strip-all", "--add-gnu-debuglink="+s.debug, built, s.program)
	s.id = open(t, s.program).ID()
	return s
}

// put copies the debug file to a place and returns it.
func (s *separated) put(t *testing.T, path string) string {
	t.Helper()
	write(t, path, read(t, s.debug))
	return path
}

// found searches for the debug file and returns its path.
func (s *separated) found(t *testing.T, search *DebugSearch) (string, error) {
	t.Helper()
	d, err := search.Debug(open(t, s.program))
	if err != nil {
		return "", err
	}
	if d.Section(".debug_info") == nil {
		t.Errorf("%s has no debug information", d.Name())
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	return d.Name(), nil
}

func TestDebugFilesAreFoundByEachRule(t *testing.T) {
	for _, test := range []struct {
		name  string
		flags []string
		place func(s *separated) string
	}{
		{"build ID below a folder", nil, func(s *separated) string {
			return filepath.Join(s.dir, "debug", ".build-id", s.id[:2], s.id[2:]+".debug")
		}},
		{"beside the program", nil, func(s *separated) string { return filepath.Join(s.dir, "bin", "program.debug") }},
		{"beside the program, no ID", []string{"-Wl,--build-id=none"}, func(s *separated) string { return filepath.Join(s.dir, "bin", "program.debug") }},
		{"in .debug", nil, func(s *separated) string { return filepath.Join(s.dir, "bin", ".debug", "program.debug") }},
		{"the program's folder below a folder", nil, func(s *separated) string {
			return filepath.Join(s.dir, "debug", s.dir, "bin", "program.debug")
		}},
		{"in a folder", nil, func(s *separated) string { return filepath.Join(s.dir, "debug", "program.debug") }},
		{"the program's name in a folder", nil, func(s *separated) string { return filepath.Join(s.dir, "debug", "program") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := separate(t, test.flags...)
			search := &DebugSearch{Dirs: []string{filepath.Join(s.dir, "debug")}}
			if path, err := s.found(t, search); !errors.Is(err, ErrNoDebug) {
				t.Fatalf("before: %s, %v", path, err)
			}
			want := s.put(t, test.place(&s))
			if path, err := s.found(t, search); err != nil || path != want {
				t.Errorf("found %s, %v, want %s", path, err, want)
			}
		})
	}
}

func TestDebugFilesAreFoundThroughLinks(t *testing.T) {
	s := separate(t)
	want := s.put(t, filepath.Join(s.dir, "bin", "program.debug"))
	link := filepath.Join(s.dir, "elsewhere")
	if err := os.Symlink(s.program, link); err != nil {
		t.Fatal(err)
	}
	d, err := new(DebugSearch).Debug(open(t, link))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.Name() != want {
		t.Errorf("found %s, want %s", d.Name(), want)
	}
}

// A debug file of another build is refused by name, and the next rule gets its turn.
func TestWrongDebugFilesAreRefusedByName(t *testing.T) {
	s := separate(t)
	wrong := filepath.Join(s.dir, "debug", ".build-id", s.id[:2], s.id[2:]+".debug")
	other := compile(t, "-g", "-DOTHER=1", "-Wl,--build-id=0xabcdef0123")
	write(t, wrong, read(t, other))
	search := &DebugSearch{Dirs: []string{filepath.Join(s.dir, "debug")}}
	_, err := s.found(t, search)
	var mismatch *IDError
	if !errors.Is(err, ErrNoDebug) || !errors.As(err, &mismatch) || mismatch.Path != wrong || mismatch.Want != s.id {
		t.Fatalf("error %v", err)
	}
	for _, word := range []string{wrong, s.id, "abcdef0123"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q does not say %s", err, word)
		}
	}
	right := s.put(t, filepath.Join(s.dir, "bin", ".debug", "program.debug"))
	if path, err := s.found(t, search); err != nil || path != right {
		t.Errorf("found %s, %v, want %s", path, err, right)
	}
	list := search.Companions(open(t, s.program))
	if len(list) < 2 || list[0].Path != wrong || !errors.As(list[0].Err, &mismatch) {
		t.Errorf("companions %+v", list)
	}
	for _, c := range list {
		if (c.Path == right) != (c.Err == nil) {
			t.Errorf("companion %s: %v", c.Path, c.Err)
		}
	}
}

func TestTheLinksCRCIsChecked(t *testing.T) {
	s := separate(t, "-Wl,--build-id=none")
	path := s.put(t, filepath.Join(s.dir, "bin", "program.debug"))
	data := read(t, path)
	data[len(data)-1] ^= 1
	write(t, path, data)
	_, err := s.found(t, new(DebugSearch))
	if !errors.Is(err, ErrNoDebug) || !strings.Contains(err.Error(), path+": refused: its CRC is 0x") {
		t.Errorf("error %v", err)
	}
}

func TestAProgramIsNotItsOwnDebugFile(t *testing.T) {
	realtest.Need(t, realtest.Objcopy)
	dir := t.TempDir()
	debug, program := filepath.Join(dir, "program"), filepath.Join(dir, "linked")
	write(t, debug, read(t, compile(t, "-g", "-Wl,--build-id=none")))
	tool(t, realtest.Objcopy, "--add-gnu-debuglink="+debug, debug, program)
	if err := os.Rename(program, debug); err != nil { // which it now links to itself
		t.Fatal(err)
	}
	if _, err := new(DebugSearch).Debug(open(t, debug)); !errors.Is(err, ErrNoDebug) || !strings.Contains(err.Error(), "it is the image itself") {
		t.Errorf("error %v", err)
	}
}

// What .gnu_debuglink says comes from the file: it must neither lead out of the
// folders nor make the reader wait.
func TestHostileLinksAreRefused(t *testing.T) {
	s := separate(t)
	data := read(t, s.program)
	link := open(t, s.program).Section(".gnu_debuglink")
	for _, name := range []string{"../away/p.dbg", "/etc/passwdxx", "..", "a/b"} {
		copied := append([]byte(nil), data...)
		field := copied[link.Off : link.Off+link.FileSize-4]
		clear(field)
		copy(field, name)
		// The CRC stands at the next multiple of four behind the name.
		path := filepath.Join(s.dir, "bin", "hostile")
		write(t, path, copied)
		_, err := new(DebugSearch).Debug(open(t, path))
		if !errors.Is(err, ErrNoDebug) || !strings.Contains(err.Error(), "is no plain file name") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "plan9" {
		t.Skip("no FIFOs here")
	}
	s := separate(t)
	path := filepath.Join(s.dir, "bin", "program.debug")
	if err := makeFIFO(path); err != nil {
		t.Fatal(err)
	}
	_, err := s.found(t, new(DebugSearch)) // would wait for ever
	if !errors.Is(err, ErrNoDebug) || !strings.Contains(err.Error(), path+": not a regular file (p---------)") {
		t.Errorf("FIFO: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(os.DevNull, path); err != nil {
		t.Fatal(err)
	}
	if _, err := s.found(t, new(DebugSearch)); !errors.Is(err, ErrNoDebug) || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("device: %v", err)
	}
}

func TestImagesInMemoryAreSearchedByIDOnly(t *testing.T) {
	s := separate(t)
	s.put(t, filepath.Join(s.dir, "bin", "program.debug"))
	i, err := Parse(s.program, read(t, s.program))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := new(DebugSearch).Debug(i); !errors.Is(err, ErrNoDebug) {
		t.Errorf("error %v", err)
	}
	dir := filepath.Join(s.dir, "debug")
	want := s.put(t, filepath.Join(dir, ".build-id", s.id[:2], s.id[2:]+".debug"))
	d, err := (&DebugSearch{Dirs: []string{dir}}).Debug(i)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.Name() != want {
		t.Errorf("found %s, want %s", d.Name(), want)
	}
}

func TestMissingFilesAreToldFromRefusedOnes(t *testing.T) {
	for _, test := range []struct {
		err     error
		missing bool
	}{
		{fmt.Errorf("x: %w", fs.ErrNotExist), true}, {syscall.ENOTDIR, true}, {fs.ErrPermission, false}, {&IDError{}, false}, {nil, false},
	} {
		if c := (Companion{Err: test.err}); c.Missing() != test.missing {
			t.Errorf("%v: missing %v", test.err, c.Missing())
		}
	}
}

// twoForDwz builds two programs that share much of their debug information, and moves
// that into a file of its own.
func twoForDwz(t *testing.T, how string) (dir string, programs [2]string, alt string) {
	t.Helper()
	realtest.Need(t, realtest.GCC, realtest.Dwz)
	dir = t.TempDir()
	types := "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <time.h>\n"
	for k := range programs {
		source := filepath.Join(dir, fmt.Sprintf("p%d.c", k))
		write(t, source, fmt.Appendf(nil, "%sint main(int n, char **v) { struct tm t = {0}; printf(\"%d %%s\", v[0]); return (int)strlen(v[0]) + t.tm_sec; }\n", types, k))
		programs[k] = filepath.Join(dir, fmt.Sprintf("p%d", k))
		tool(t, realtest.GCC, "-g", "-O1", "-Wl,--build-id", "-o", programs[k], source)
	}
	alt = filepath.Join(dir, "common.debug")
	args := []string{"-m", alt}
	if how != "" {
		args = append(args, "-M", how)
	}
	tool(t, realtest.Dwz, append(args, programs[:]...)...)
	return dir, programs, alt
}

func TestAltFilesAreFoundByEachRule(t *testing.T) {
	dir, programs, alt := twoForDwz(t, "")
	name, id, ok := open(t, programs[0]).GnuDebugAltLink()
	if want := open(t, alt).ID(); !ok || name != alt || fmt.Sprintf("%x", id) != want {
		t.Fatalf("link %q, %x, %v, want %q, %s", name, id, ok, alt, want)
	}
	hexID := fmt.Sprintf("%x", id)
	// The two programs link to it by an absolute path; a third by a relative one.
	_, relative, _ := twoForDwz(t, "../debug/.dwz/x86/common.debug")
	for _, test := range []struct{ name, program, place string }{
		{"as named", programs[0], alt},
		{"by ID", programs[0], filepath.Join(dir, "debug", ".build-id", hexID[:2], hexID[2:]+".debug")},
		{"in .dwz", programs[1], filepath.Join(dir, "debug", ".dwz", "common.debug")},
		{"in a folder", programs[1], filepath.Join(dir, "debug", "common.debug")},
		{"relative", relative[0], filepath.Join(filepath.Dir(relative[0]), "..", "debug", ".dwz", "x86", "common.debug")},
		{"below .dwz", relative[1], filepath.Join(dir, "debug", ".dwz", "x86", "common.debug")},
	} {
		t.Run(test.name, func(t *testing.T) {
			i := open(t, test.program)
			from := filepath.Join(filepath.Dir(test.program), "common.debug")
			data := read(t, from)
			if err := os.Remove(from); err != nil {
				t.Fatal(err)
			}
			defer write(t, from, data)
			write(t, test.place, data)
			search := &DebugSearch{Dirs: []string{filepath.Join(dir, "debug")}}
			a, err := search.Alt(i)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			if filepath.Clean(a.Name()) != filepath.Clean(test.place) {
				t.Errorf("found %s, want %s", a.Name(), test.place)
			}
			found := false
			for _, c := range search.Companions(i) {
				found = found || c.Kind == AltFile && c.Err == nil && c.Path == a.Name()
			}
			if !found {
				t.Error("it is not among the companions")
			}
			if err := os.Remove(test.place); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestAltFilesWithAnotherIDAreRefused(t *testing.T) {
	_, programs, alt := twoForDwz(t, "")
	write(t, alt, read(t, compile(t, "-g")))
	var mismatch *IDError
	if _, err := new(DebugSearch).Alt(open(t, programs[0])); !errors.Is(err, ErrNoDebug) || !errors.As(err, &mismatch) || mismatch.Path != alt {
		t.Errorf("error %v", err)
	}
	if a, err := new(DebugSearch).Alt(open(t, compile(t, "-g"))); a != nil || err != nil {
		t.Errorf("an image that names none: %v, %v", a, err)
	}
}
