package crash

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// readText reads a whole report that is text.
func readText(name string, r io.ReaderAt, size int64) (string, error) {
	if size > maxText {
		return "", fmt.Errorf("crash: %s: %w: %d bytes of text, at most %d are read", name, ErrDamaged, size, maxText)
	}
	b := make([]byte, size)
	if n, err := r.ReadAt(b, 0); n < len(b) {
		return "", fmt.Errorf("crash: %s: %w", name, err)
	}
	return string(b), nil
}

// Bounds of what a report in text lists.
const (
	maxThreads = 1 << 16
	maxImages  = 1 << 16
)

// appleID makes an ID of a UUID as Apple writes it.
func appleID(text string) string {
	id := strings.ToLower(strings.ReplaceAll(text, "-", ""))
	if len(id) != 32 || strings.Trim(id, "0123456789abcdef") != "" || strings.Trim(id, "0") == "" {
		return ""
	}
	return id
}

// parseHex reads "0x…" or plain hexadecimal.
func parseHex(text string) (uint64, bool) {
	v, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
	return v, err == nil
}

// goArch is Go's name of an architecture that Apple or Android names.
func goArch(name string) string {
	switch strings.ToLower(strings.TrimSuffix(name, " (Native)")) {
	case "arm64", "arm64e", "arm-64", "aarch64":
		return "arm64"
	case "x86_64", "x86_64h", "x86-64":
		return "amd64"
	case "x86", "i386", "i686":
		return "386"
	case "arm", "armv7", "armv7s", "armv7k", "armv6":
		return "arm"
	}
	return ""
}

// setArch tells the report which architecture it is of.
func (r *Report) setArch(name string) {
	if r.Arch = goArch(name); r.Arch == "" {
		r.Arch = name
	}
	r.arch = archs[r.Arch]
}

// stripSignatures takes the signatures of pointer authentication off the addresses of arm64, in
// the stacks that a report has, and in the registers that hold places in code and on the stack.
func (r *Report) stripSignatures() {
	mask := r.strip()
	for _, t := range r.Threads {
		for k := range t.Registers {
			switch reg := &t.Registers[k]; reg.Name {
			case "lr", "pc", "fp", "sp", "x29", "x30":
				reg.Value &= mask
			}
		}
		for k := range t.raw {
			t.raw[k].addr &= mask
		}
	}
}

// orderRegisters sorts registers for people: as the processor numbers them.
func orderRegisters(list []Register) {
	rank := func(name string) int {
		if len(name) > 1 && strings.Contains("xr", name[:1]) {
			if n, err := strconv.Atoi(name[1:]); err == nil {
				return n
			}
		}
		if k := slices.Index(registerOrder, name); k >= 0 {
			return 100 + k
		}
		return 1000
	}
	slices.SortStableFunc(list, func(a, b Register) int {
		// rax … before r8 …
		ra, rb := rank(a.Name), rank(b.Name)
		if (ra >= 100) != (rb >= 100) && (ra < 100 && a.Name[0] == 'r' || rb < 100 && b.Name[0] == 'r') && len(list) < 30 {
			ra, rb = (ra+100)%200, (rb+100)%200
		}
		return cmp.Or(cmp.Compare(ra, rb), cmp.Compare(a.Name, b.Name))
	})
}

var registerOrder = []string{
	"rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "eax", "ebx", "ecx", "edx", "esi", "edi", "ebp", "esp",
	"ip", "fp", "lr", "sp", "pc", "rip", "eip", "rflags", "eflags", "cpsr", "pst", "far", "esr",
}
