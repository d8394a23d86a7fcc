package realtest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Small32 returns the path of a 32-bit program that this machine's kernel runs beside its 64-bit ones, i386's or arm's. It prints "ready",
// reads stdin to its end, and exits with 0. Where none runs the test ends as with [Need].
func Small32(t testing.TB) string {
	t.Helper()
	if runtime.GOARCH != "arm64" {
		Need(t, Binutils, I386)
		return Build(t, "tiny32")
	}
	path := filepath.Join(t.TempDir(), "tiny32")
	if err := os.WriteFile(path, smallARM(), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path)
	cmd.Stdin = strings.NewReader("")
	if said, err := cmd.Output(); err != nil || string(said) != "ready\n" {
		lack(t, fmt.Errorf("%w: a kernel that runs 32-bit Arm programs: %w: %q", ErrMissing, err, said))
	}
	return path
}

// smallARM is the program for 32-bit Arm: no compiler for arm64 makes one. It begins with its one segment's headers (ELF for the Arm
// Architecture, EABI version 5).
func smallARM() []byte {
	const at, headers = 0x10000, 52 + 32
	code := []uint32{
		0xE3A07004, 0xE3A00001, 0xE28F1030, 0xE3A02006, 0xEF000000, // write(1, text, 6)
		0xE24DD008,                                                             // a place on the stack
		0xE3A07003, 0xE3A00000, 0xE1A0100D, 0xE3A02001, 0xEF000000, 0xE3500000, // read(0, place, 1)
		0xCAFFFFF8,                         // again, unless that was the end
		0xE3A07001, 0xE3A00000, 0xEF000000, // exit(0)
	}
	const text = "ready\n"
	size := uint32(headers + 4*len(code) + len(text))
	var b bytes.Buffer
	b.WriteString("\x7fELF\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	for _, v := range []any{
		[]uint16{2, 40}, []uint32{1, at + headers, 52, 0, 5 << 24}, []uint16{52, 32, 1, 40, 0, 0}, // an executable for Arm
		[]uint32{1, 0, at, at, size, size, 5, at}, code,
	} {
		_ = binary.Write(&b, binary.LittleEndian, v) // of a fixed size, into memory
	}
	b.WriteString(text)
	return b.Bytes()
}
