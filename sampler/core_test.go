package sampler

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"testing"

	"github.com/callreel/callreel/sampler/corefile"
	"github.com/callreel/callreel/unwind"
)

// hostileCore is a core of one thread with a stack of frame records, in code that no
// file is behind.
func hostileCore() []byte {
	const code, stack = 0x400000, 0x7f0000000000
	var b bytes.Buffer
	put := func(v any) { _ = binary.Write(&b, binary.LittleEndian, v) } // a bytes.Buffer takes every write
	status := make([]byte, 336)
	binary.LittleEndian.PutUint32(status[32:], 77)
	reg := func(k int, v uint64) { binary.LittleEndian.PutUint64(status[112+8*k:], v) }
	reg(4, stack+64)  // rbp
	reg(16, code+128) // rip
	reg(19, stack)    // rsp
	note := binary.LittleEndian.AppendUint32(nil, 5)
	note = binary.LittleEndian.AppendUint32(note, uint32(len(status)))
	note = binary.LittleEndian.AppendUint32(note, 1)
	note = append(append(note, "CORE\x00\x00\x00\x00"...), status...)
	h := elf.Header64{Type: uint16(elf.ET_CORE), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 3}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1
	put(h)
	at := uint64(64 + 3*56)
	put(elf.Prog64{Type: uint32(elf.PT_NOTE), Off: at, Filesz: uint64(len(note))})
	at += uint64(len(note))
	put(elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: 5, Off: at, Vaddr: code, Filesz: 256, Memsz: 256})
	put(elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: 6, Off: at + 256, Vaddr: stack, Filesz: 512, Memsz: 512})
	b.Write(note)
	b.Write(bytes.Repeat([]byte{0xe8, 0, 0, 0, 0}, 52)[:256])
	words := make([]uint64, 64)
	for k := range 10 {
		words[8+4*k], words[9+4*k] = stack+64+32*uint64(k+1), code+5*uint64(k+1)
	}
	words[8+4*9], words[9+4*9] = 0, 0
	put(words)
	return b.Bytes()
}

func TestCoreWithoutAnyFileIsWalkedByFramePointers(t *testing.T) {
	f, err := corefile.Parse("core", hostileCore())
	if err != nil {
		t.Fatal(err)
	}
	c, err := coreStacks(context.Background(), f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Threads) != 1 || c.Threads[0].TID != 77 || len(c.Threads[0].Frames) != 10 || !c.Threads[0].End.Complete() {
		t.Errorf("%+v", c.Threads)
	}
	for _, fr := range c.Threads[0].Frames {
		if fr.Image != nil || fr.Flags.Has(unwind.Late) {
			t.Errorf("%+v", fr)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestDamagedCoreGivesStacksWithinItsBounds(t *testing.T) {
	data := hostileCore()
	for at := range data {
		for _, with := range []byte{data[at] ^ 1<<(at%8), 0xff, 0} {
			damaged := bytes.Clone(data)
			damaged[at] = with
			stacksOfCore(t, damaged)
		}
	}
	for cut := range data {
		stacksOfCore(t, data[:cut:cut])
	}
}

// A call to nowhere has left its return address on a stack that the file no longer has.
func TestStackThatIsCutOffIsSaidToBeUnreadable(t *testing.T) {
	data := hostileCore()
	const pc = 64 + 3*56 + 20 + 112 + 8*16 // behind headers and the note's name
	binary.LittleEndian.PutUint64(data[pc:], 0)
	f, err := corefile.Parse("core", data[:len(data)-512])
	if err != nil {
		t.Fatal(err)
	}
	c, err := coreStacks(context.Background(), f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if th := &c.Threads[0]; th.Frames[0].Address != 0 || th.End.Reason != unwind.Unreadable || len(c.Problems) == 0 {
		t.Errorf("%+v, problems %v", th, c.Problems)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestFramesOfACaptureAreBounded(t *testing.T) {
	left := 100
	walked := make([]unwind.Frame, 70)
	for _, want := range []struct {
		frames int
		reason unwind.Reason
	}{{70, unwind.Complete}, {64, unwind.TooDeep}, {64, unwind.TooDeep}} {
		got, end := within(&left, walked, unwind.End{})
		if len(got) != want.frames || end.Reason != want.reason {
			t.Errorf("%d frames, %v; want %+v", len(got), end, want)
		}
	}
}

// stacksOfCore takes what stacks there are.
func stacksOfCore(t *testing.T, data []byte) {
	f, err := corefile.Parse("core", data)
	if err != nil {
		return
	}
	c, err := coreStacks(context.Background(), f, Options{MaxFrames: 100})
	if err != nil {
		t.Fatal(err)
	}
	for k := range c.Threads {
		if th := &c.Threads[k]; len(th.Frames) == 0 || th.End.String() == "" {
			t.Errorf("%+v", th)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func FuzzCoreStacks(f *testing.F) {
	f.Add(hostileCore())
	f.Fuzz(func(t *testing.T, data []byte) { stacksOfCore(t, data) })
}
