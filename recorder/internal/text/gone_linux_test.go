package text

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// goneMemory is ownMemory with a live process's errors.
type goneMemory struct{ ownMemory }

func gone(n int, err error) (int, error) {
	if errors.Is(err, unix.EIO) {
		err = process.ErrNoMapping
	}
	return n, err
}

func (m goneMemory) ReadAt(buf []byte, addr uint64) (int, error) {
	return gone(m.ownMemory.ReadAt(buf, addr))
}

func (m goneMemory) WriteAt(buf []byte, addr uint64) (int, error) {
	return gone(m.ownMemory.WriteAt(buf, addr))
}

// A file of five pages of code with a patch on each is truncated to two: what was written to the others is gone with them.
func TestTextThatATruncatedFileHasTakenAlong(t *testing.T) {
	const pages, stay = 5, 2
	size := max(PageSize, os.Getpagesize()) // the kernel takes whole pages of its own
	content := bytes.Repeat([]byte{0x90}, pages*size)
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mapped, err := unix.Mmap(int(f.Fd()), 0, pages*size, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Munmap(mapped); err != nil {
			t.Error(err)
		}
	}()
	own, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	at := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mapped))))
	mem := goneMemory{ownMemory{own}}
	maps := []process.Mapping{{Start: at, End: at + uint64(pages*size), Inode: 1, Path: path, Perm: process.PermRead | process.PermExec}}
	old, changedTo := content[:5], []byte{0xE9, 1, 2, 3, 4}
	var patches []stub.Patch
	for i := range pages {
		p := stub.NewPatch(at+uint64(i*size)+100, old, changedTo)
		patches = append(patches, p)
		if _, err := mem.WriteAt(changedTo, p.Addr); err != nil {
			t.Fatal(err)
		}
	}
	before, _, err := Restore(mem, maps, patches)
	if err != nil || len(before) != pages {
		t.Fatalf("%d pages, %v", len(before), err)
	}
	if err := f.Truncate(int64(stay * size)); err != nil {
		t.Fatal(err)
	}
	other, err := Changed(mem, before, maps, func(*Page) bool { return true })
	if err != nil || !other[at] {
		t.Errorf("changed are %v, %v", other, err)
	}
	left, foreign, err := Restore(mem, maps, patches)
	if err != nil || len(left) != stay || foreign != 0 {
		t.Fatalf("%d pages left, %d foreign, %v", len(left), foreign, err)
	}
	if err := WriteThere(mem, before); err != nil { // as they were before they had gone
		t.Fatal(err)
	}
	same, err := SameThere(mem, at, content, func(uint64) bool { return false })
	if err != nil || !same {
		t.Errorf("the rest is as the file was: %v, %v", same, err)
	}
	if !bytes.Equal(mapped[:stay*size], content[:stay*size]) {
		t.Error("a patch is left")
	}
	if _, err := mem.WriteAt([]byte{0xCC}, at+PageSize); err != nil {
		t.Fatal(err)
	}
	if same, err := SameThere(mem, at, content, func(addr uint64) bool { return addr == at }); err != nil || same {
		t.Errorf("a breakpoint is overlooked: %v", err)
	}
}
