package object

import (
	"bytes"
	"encoding/binary"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// buildFat joins the libraries of two architectures.
func buildFat(t testing.TB, flags ...string) (path string, parts map[string]machFiles) {
	t.Helper()
	realtest.Need(t, realtest.LLVMLipo)
	parts = map[string]machFiles{"arm64": buildMach(t, "arm64"), "x86_64": buildMach(t, "x86_64")}
	path = filepath.Join(t.TempDir(), "fat")
	tool(t, realtest.LLVMLipo, slices.Concat([]string{"-create", parts["arm64"].dylib, parts["x86_64"].dylib}, flags, []string{"-output", path})...)
	return path, parts
}

func TestFatFilesGiveEachArchitecture(t *testing.T) {
	for _, flags := range [][]string{nil, {"-fat64"}} {
		path, parts := buildFat(t, flags...)
		slices, err := Slices(path)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range slices {
			names = append(names, s.Name)
		}
		if want := strings.TrimSpace(tool(t, realtest.LLVMLipo, "-archs", path)); strings.Join(names, " ") != want {
			t.Errorf("architectures %q, want %q", names, want)
		}
		for ask, arch := range map[string]string{"arm64": "arm64", "aarch64": "arm64", "x86_64": "x86_64", "amd64": "x86_64"} {
			i, err := OpenArch(path, ask)
			if err != nil {
				t.Fatal(err)
			}
			want := open(t, parts[arch].dylib)
			if i.ArchName() != arch || i.ID() != want.ID() || !bytes.Equal(all(t, i), all(t, want)) {
				t.Errorf("%s: %s with ID %s, want %s", ask, i.ArchName(), i.ID(), want.ID())
			}
			if err := i.Close(); err != nil {
				t.Error(err)
			}
			byID, err := OpenID(path, want.ID())
			if err != nil || byID.ArchName() != arch {
				t.Fatalf("by ID: %v", err)
			}
			if err := byID.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestFatFilesAreNotGuessedAt(t *testing.T) {
	path, parts := buildFat(t)
	_, err := Open(path)
	var fat *FatError
	if !errors.As(err, &fat) || !errors.Is(err, ErrSeveralArchs) || len(fat.Slices) != 2 {
		t.Fatalf("error %v", err)
	}
	for _, word := range []string{path, "arm64", "x86_64"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q does not name %s", err, word)
		}
	}
	for _, test := range []struct{ path, arch string }{{path, "armv7"}, {path, "arm64e"}, {parts["arm64"].dylib, "x86_64"}, {compile(t), "arm64"}} {
		if _, err := OpenArch(test.path, test.arch); !errors.Is(err, ErrNoArch) || !strings.Contains(err.Error(), test.path) {
			t.Errorf("%s of %s: %v", test.arch, test.path, err)
		}
	}
	// One architecture leaves no choice.
	single := filepath.Join(t.TempDir(), "single")
	tool(t, realtest.LLVMLipo, "-create", parts["arm64"].dylib, "-output", single)
	if i := open(t, single); i.ArchName() != "arm64" {
		t.Errorf("%s", i.ArchName())
	}
	for _, thin := range []string{parts["arm64"].dylib, compile(t)} {
		if list, err := Slices(thin); list != nil || err != nil {
			t.Errorf("%s is no fat file: %v, %v", thin, list, err)
		}
	}
	if _, err := OpenArch(compile(t), "amd64"); err != nil {
		t.Errorf("the only architecture of an ELF file: %v", err)
	}
}

func TestOpenIDRefusesOtherImages(t *testing.T) {
	path, parts := buildFat(t)
	var other *IDError
	if _, err := OpenID(path, "00112233"); !errors.As(err, &other) || len(other.Got) != 2 || other.Path != path {
		t.Errorf("fat file: %v", err)
	}
	if _, err := OpenID(parts["arm64"].dylib, open(t, parts["x86_64"].dylib).ID()); !errors.As(err, &other) || len(other.Got) != 1 {
		t.Errorf("thin file: %v", err)
	}
}

func TestArm64eIsToldFromArm64(t *testing.T) {
	realtest.Need(t, realtest.LLVMLipo)
	e, plain := buildMach(t, "arm64e").objects[0], buildMach(t, "arm64").objects[0]
	path := filepath.Join(t.TempDir(), "fat")
	tool(t, realtest.LLVMLipo, "-create", e, plain, "-output", path)
	for _, arch := range []string{"arm64", "arm64e"} {
		i, err := OpenArch(path, arch)
		if err != nil {
			t.Fatal(err)
		}
		if i.ArchName() != arch || i.Arch != ARM64 {
			t.Errorf("asked for %s, got %s", arch, i.ArchName())
		}
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	}
	// Where only arm64e is, the general name finds it.
	if i, err := OpenArch(e, "arm64"); err != nil || i.ArchName() != "arm64e" {
		t.Errorf("arm64 of an arm64e file: %v", err)
	} else if err := i.Close(); err != nil {
		t.Error(err)
	}
}

func TestBadFatHeadersAreErrors(t *testing.T) {
	path, _ := buildFat(t)
	for _, test := range []struct {
		name   string
		damage func(b []byte) []byte
		says   string
	}{
		{"truncated header", func(b []byte) []byte { return b[:20] }, "2 entries reach beyond the end of the file"},
		{"truncated part", func(b []byte) []byte { return b[:len(b)-1] }, "are not inside of the file"},
		{"part in the header", func(b []byte) []byte { binary.BigEndian.PutUint32(b[16:], 8); return b }, "are not inside of the file"},
		{"size", func(b []byte) []byte { binary.BigEndian.PutUint32(b[20:], 1<<31); return b }, "0x80000000 bytes are not inside"},
		{"none", func(b []byte) []byte { binary.BigEndian.PutUint32(b[4:], 0); return b }, "no architectures"},
		{"Java class", func(b []byte) []byte { binary.BigEndian.PutUint32(b[4:], 52); return b }, ErrUnknownFormat.Error()},
		{"nested", func(b []byte) []byte { binary.BigEndian.PutUint32(b[4:], 1); copy(b[0x4000:], b[:64]); return b }, ErrUnknownFormat.Error()},
	} {
		t.Run(test.name, func(t *testing.T) {
			data := read(t, path)
			if test.name == "nested" {
				binary.BigEndian.PutUint32(data[16:], 0x4000)
			}
			if _, err := Parse("x", test.damage(data)); err == nil || !strings.Contains(err.Error(), test.says) || !strings.HasPrefix(err.Error(), "object: x: ") {
				t.Errorf("error %v, want one that says %q", err, test.says)
			}
		})
	}
}
