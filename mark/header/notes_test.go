package header

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"
)

// note is a marker as the file has it.
type note struct {
	addr, semaphore           uint64
	provider, name, arguments string
}

// readNotes reads the notes of markers by the format's description alone: SystemTap's wiki, "UserSpaceProbeImplementation".
func readNotes(t *testing.T, path string) []note {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := f.Section(".note.stapsdt")
	if s == nil {
		t.Fatalf("%s has no .note.stapsdt", path)
	}
	// lld's --gc-sections follows no relocations of notes: the section is gone then, and its address in notes is 0.
	base := uint64(0)
	if s := f.Section(".stapsdt.base"); s != nil {
		base = s.Addr
	}
	data, err := s.Data()
	if err != nil {
		t.Fatal(err)
	}
	var list []note
	for len(data) > 0 {
		nameSize, descSize := binary.LittleEndian.Uint32(data), binary.LittleEndian.Uint32(data[4:])
		if kind := binary.LittleEndian.Uint32(data[8:]); kind != 3 || string(data[12:12+nameSize]) != "stapsdt\x00" {
			t.Fatalf("%s: a note of type %d", path, kind)
		}
		desc := data[12+(nameSize+3)&^3:][:descSize]
		data = data[12+(nameSize+3)&^3+(descSize+3)&^3:]
		if at := binary.LittleEndian.Uint64(desc[8:]); at != base {
			t.Errorf("%s: base is %#x in a note, and %#x in the file", path, at, base)
		}
		text := bytes.Split(desc[24:], []byte{0})
		list = append(list, note{binary.LittleEndian.Uint64(desc), binary.LittleEndian.Uint64(desc[16:]), string(text[0]), string(text[1]), string(text[2])})
	}
	return list
}

// code returns n bytes of an image.
func code(t *testing.T, path string, addr uint64, n int) []byte {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && addr >= p.Vaddr && addr+uint64(n) <= p.Vaddr+p.Filesz {
			b := make([]byte, n)
			if _, err := p.ReadAt(b, int64(addr-p.Vaddr)); err != nil {
				t.Fatal(err)
			}
			return b
		}
	}
	t.Fatalf("%s has nothing at %#x", path, addr)
	return nil
}
