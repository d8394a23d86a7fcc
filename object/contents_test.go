package object

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// copied copies a file to where it may be damaged.
func copied(t *testing.T, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), filepath.Base(path))
	if err := os.WriteFile(to, read(t, path), 0o644); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestATruncatedFileIsAnErrorOfThatFile(t *testing.T) {
	path := copied(t, library(t, "libstdc++.so.6"))
	i := open(t, path)
	text := i.Section(".text")
	before, err := i.SectionData(text)
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Clone(before)
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before, want) {
		t.Error("what had been read is another now")
	}
	if _, err := i.Symbols(); !errors.Is(err, ErrChanged) {
		t.Errorf("symbols of a truncated file: %v, want ErrChanged", err)
	}
	if _, _, err := i.EHFrame(); !errors.Is(err, ErrChanged) {
		t.Errorf(".eh_frame of a truncated file: %v, want ErrChanged", err)
	}
}

func TestBytesThatChangeMeanwhileAreNotMixed(t *testing.T) {
	path := copied(t, library(t, "libstdc++.so.6"))
	i := open(t, path)
	s := i.Section(".rodata")
	before, err := i.SectionData(s)
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Clone(before)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, s.FileSize), int64(s.Off)); err != nil {
		t.Fatal(err)
	}
	// Where the file system's clock is coarse.
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if again, err := i.SectionData(s); err != nil && !errors.Is(err, ErrChanged) || err == nil && !bytes.Equal(again, want) {
		t.Errorf("other bytes than before, %v", err)
	}
	if !bytes.Equal(before, want) {
		t.Error("what had been read is another now")
	}
	if _, err := i.SectionData(i.Section(".eh_frame")); !errors.Is(err, ErrChanged) {
		t.Errorf("another part of the file: %v, want ErrChanged", err)
	}
}

func TestFaultsOfMappedSectionsAreErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "big")
	run(t, "cp", compile(t, "-g"), path)
	blob := filepath.Join(t.TempDir(), "blob")
	if err := os.WriteFile(blob, bytes.Repeat([]byte("text"), leastMapped), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, "objcopy", "--add-section", ".debug_more="+blob, path)
	i := open(t, path)
	parts, err := i.MapSections(context.Background(), 1, i.Section(".debug_more"))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(i.contents.mapping.data); n == 0 {
		t.Fatal("the section is not mapped")
	}
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	err = CatchFaults(func() error {
		if bytes.IndexByte(parts[0], 0) >= 0 {
			return errors.New("zeros")
		}
		return nil
	})
	if !errors.Is(err, ErrChanged) {
		t.Errorf("%v, want ErrChanged", err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || onlyOurs(info) {
		t.Errorf("a file that all may write to counts as ours alone, %v", err)
	}
}

func TestFilesThatClaimToBeLargeTakeLittle(t *testing.T) {
	// A header, and 100 GB of nothing.
	data := read(t, compile(t))
	i, err := Parse("x", data)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []elf.SectionType{elf.SHT_SYMTAB, elf.SHT_STRTAB, elf.SHT_DYNSYM, elf.SHT_NOTE, elf.SHT_PROGBITS} {
		path := filepath.Join(t.TempDir(), "sparse")
		large := bytes.Clone(data)
		for k, s := range i.Sections() {
			if elf.SectionType(s.Type) == kind {
				at := int(i.ByteOrder.Uint64(large[40:])) + 64*k
				i.ByteOrder.PutUint64(large[at+24:], 1<<30)
				i.ByteOrder.PutUint64(large[at+32:], 99<<30)
			}
		}
		if err := os.WriteFile(path, large, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, 100<<30); err != nil {
			t.Fatal(err)
		}
		a := NewAllowance(0)
		im, err := Opener{Memory: a}.Open(path)
		if err != nil { // whose names' section is one of them
			if !errors.Is(err, ErrMemory) {
				t.Errorf("%v: %v", kind, err)
			}
			continue
		}
		var all error
		for k := range im.Sections() {
			_, err := im.SectionData(&im.Sections()[k])
			all = errors.Join(all, err)
		}
		_, err = im.Symbols()
		if all = errors.Join(all, err); !errors.Is(all, ErrMemory) {
			t.Errorf("%v: %v, want ErrMemory", kind, all)
		}
		if kept := onDisk(im.FileInfo()); kept > 1<<20 {
			t.Fatalf("the file has %d bytes on disk: no holes here", kept)
		}
		if rest := a.Remaining(); rest > DefaultMemory+16<<20 {
			t.Errorf("%v: room for %d bytes", kind, rest)
		}
		if err := im.Close(); err != nil || a.used != 0 || a.extra != 0 {
			t.Errorf("%v: after Close %d bytes are in use and %d credited, %v", kind, a.used, a.extra, err)
		}
	}
}

func TestZipBombsAreRefused(t *testing.T) {
	path := compile(t, "-g")
	blob := filepath.Join(t.TempDir(), "blob")
	f, err := os.Create(blob)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(300<<20), f.Close()); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"zlib", "zstd", "xz"} {
		out := filepath.Join(t.TempDir(), kind)
		name := ".debug_bomb"
		if kind == "xz" {
			name = ".gnu_debugdata"
			run(t, "sh", "-c", "xz -c "+blob+" > "+blob+".xz")
			run(t, "objcopy", "--add-section", name+"="+blob+".xz", path, out)
		} else {
			run(t, "objcopy", "--add-section", name+"="+blob, path, out+".plain")
			run(t, "objcopy", "--compress-debug-sections="+kind, out+".plain", out)
		}
		i := open(t, out)
		var err error
		if kind == "xz" {
			_, err = i.Symbols()
		} else {
			_, err = i.SectionData(i.Section(name))
		}
		var over *MemoryError
		if !errors.As(err, &over) || !errors.Is(err, ErrMemory) {
			t.Errorf("%s: %v, want a MemoryError", kind, err)
		} else if !bytes.Contains([]byte(err.Error()), []byte(name)) {
			t.Errorf("%s: %q doesn't name the section", kind, err)
		}
	}
}
