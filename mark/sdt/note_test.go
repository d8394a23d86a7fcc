package sdt

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

// note is a note as sdt.h makes it.
func note(addr, base, semaphore uint64, provider, name, args string) []byte {
	desc := binary.LittleEndian.AppendUint64(nil, addr)
	desc = binary.LittleEndian.AppendUint64(desc, base)
	desc = binary.LittleEndian.AppendUint64(desc, semaphore)
	desc = append(desc, provider+"\x00"+name+"\x00"+args+"\x00"...)
	var b []byte
	for _, v := range []int{8, len(desc), 3} {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	b = append(append(b, "stapsdt\x00"...), desc...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func TestNotesAreReadInTheirOrder(t *testing.T) {
	data := append(note(0x1000, 0x500, 0, "p", "a__start", "-4@%edi"), note(0x2000, 0x500, 0x3000, "p", "a__done", "")...)
	notes, err := parse(data, binary.LittleEndian, 0x500)
	if err != nil || len(notes) != 2 || notes[0].Addr != 0x1000 || len(notes[0].Arguments) != 1 || notes[1].Semaphore != 0x3000 {
		t.Fatalf("%+v, %v", notes, err)
	}
	// prelink has moved the image since.
	notes, err = parse(data, binary.LittleEndian, 0x700)
	if err != nil || notes[0].Addr != 0x1200 || notes[0].Semaphore != 0 || notes[1].Semaphore != 0x3200 {
		t.Fatalf("%+v, %v", notes, err)
	}
}

func TestDamagedNotesGiveThoseBefore(t *testing.T) {
	whole := note(0x1000, 0, 0, "p", "n", "")
	long := note(0x1000, 0, 0, "p", "n", "")
	binary.LittleEndian.PutUint32(long[4:], 1<<31)
	endless := note(0x1000, 0, 0, "p", "n", "")
	endless = append(endless[:20:20], []byte(strings.Repeat("x", len(endless)-20))...)
	for _, bad := range [][]byte{long, endless, note(0, 0, 0, "p", strings.Repeat("n", maxText+1), "")} {
		notes, err := parse(append(append([]byte{}, whole...), bad...), binary.LittleEndian, 0)
		if !errors.Is(err, ErrNote) || len(notes) != 1 {
			t.Errorf("%d notes, %v", len(notes), err)
		}
	}
	if notes, err := parse(whole[:11], binary.LittleEndian, 0); len(notes) != 0 || err != nil {
		t.Errorf("%v, %v", notes, err)
	}
}

// libstdc++ has three notes, in Debian and elsewhere.
func TestTheNotesOfLibstdcxx(t *testing.T) {
	var im *object.Image
	var err error
	for _, path := range []string{"/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/lib/aarch64-linux-gnu/libstdc++.so.6", "/usr/lib64/libstdc++.so.6", "/usr/lib/libstdc++.so.6"} {
		if im, err = object.Open(path); err == nil {
			break
		}
	}
	realtest.NeedThat(t, "libstdc++", err)
	defer im.Close()
	notes, err := Read(im)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, n := range notes {
		names[n.Provider+":"+n.Name] = true
		for _, a := range n.Arguments {
			if a.Err != nil || a.Size != 8 {
				t.Errorf("%s: %+v", n.Name, a)
			}
		}
	}
	for _, want := range []string{"libstdcxx:throw", "libstdcxx:catch", "libstdcxx:rethrow"} {
		if !names[want] {
			t.Errorf("%s is missing in %v", want, names)
		}
	}
}

func FuzzNotes(f *testing.F) {
	f.Add(note(0x1000, 0x500, 0x3000, "postgresql", "query__start", "8@%rbx -4@40+CheckpointStats(%rip)"), uint64(0x500))
	f.Add([]byte{8, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 3, 0, 0, 0}, uint64(0))
	f.Fuzz(func(t *testing.T, data []byte, base uint64) {
		notes, err := parse(data, binary.LittleEndian, base)
		if err != nil && !errors.Is(err, ErrNote) {
			t.Error(err)
		}
		if len(Meanings(notes, nil)) != len(notes) {
			t.Error("not each note means something")
		}
	})
}
