package object

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func TestSectionsAreInflatedAtOnceAsOneByOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	run(t, "objcopy", "--compress-debug-sections=zlib", compile(t, "-g", "-gz=none"), path)
	i := open(t, path)
	var sections []*Section
	for k := range i.Sections() {
		sections = append(sections, &i.Sections()[k], nil)
	}
	for _, workers := range []int{0, 1, 3, 100} {
		got, err := i.SectionsData(context.Background(), workers, sections...)
		if err != nil || len(got) != len(sections) {
			t.Fatalf("%d contents, %v", len(got), err)
		}
		for k, s := range sections {
			if s == nil {
				if got[k] != nil {
					t.Errorf("contents of no section")
				}
				continue
			}
			if want, err := i.SectionData(s); err != nil || !bytes.Equal(got[k], want) {
				t.Errorf("%s: %d bytes, %v, want %d", s.Name, len(got[k]), err, len(want))
			}
		}
	}
	// Damage to one section leaves the others.
	data := read(t, path)
	info := i.Section(".debug_info")
	clear(data[info.Off+info.FileSize/2:][:8])
	broken, err := Parse("x", data)
	if err != nil {
		t.Fatal(err)
	}
	got, err := broken.SectionsData(context.Background(), 2, broken.Section(".debug_info"), broken.Section(".debug_line"))
	if err == nil || !strings.Contains(err.Error(), "section .debug_info at 0x") || got[0] != nil || len(got[1]) == 0 {
		t.Errorf("%d and %d bytes, %v", len(got[0]), len(got[1]), err)
	}
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := i.SectionsData(canceled, 2, sections...); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

func TestReleasedPartsCanStillBeRead(t *testing.T) {
	path := library(t, "libstdc++.so.6")
	i := open(t, path)
	want := read(t, path)
	var parts [][]byte
	for off := range int(i.size) >> 20 {
		part, err := i.contents.mapped(uint64(off)<<20, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		i.Release(part)
		parts = append(parts, part)
	}
	i.Release(nil)
	i.Release([]byte("not a part of it"))
	i.Release(all(t, i)) // private: its bytes would come back empty
	for off, part := range parts {
		if !bytes.Equal(part, want[off<<20:][:1<<20]) {
			t.Errorf("MiB %d: other bytes than the file's", off)
		}
	}
	if !bytes.Equal(all(t, i), want) {
		t.Error("memory that is no mapping was dropped")
	}
	inMemory, err := Parse("x", want)
	if err != nil {
		t.Fatal(err)
	}
	inMemory.Release(want) // no mapping: its pages would come back empty
	if !bytes.Equal(want, all(t, inMemory)) || !bytes.Equal(want, all(t, i)) {
		t.Error("memory that is no mapping was dropped")
	}
}
