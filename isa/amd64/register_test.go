package amd64

import "testing"

func TestDWARFNumbersFollowTheABI(t *testing.T) {
	// System V AMD64 ABI figure 3.36.
	for n, name := range map[int]string{
		0: "rax", 1: "rdx", 2: "rcx", 3: "rbx", 4: "rsi", 5: "rdi", 6: "rbp", 7: "rsp", 8: "r8", 15: "r15", 16: "ra",
		17: "xmm0", 32: "xmm15", 33: "st0", 40: "st7", 41: "mm0", 48: "mm7", 49: "rflags", 50: "es", 51: "cs", 52: "ss",
		53: "ds", 54: "fs", 55: "gs", 56: "dwarf56", 58: "fs.base", 59: "gs.base", 62: "tr", 63: "ldtr", 64: "mxcsr", 65: "fcw",
		66: "fsw", 67: "xmm16", 82: "xmm31", 83: "dwarf83", 118: "k0", 125: "k7", 126: "bnd0", 129: "bnd3", 130: "dwarf130", -1: "dwarf-1",
	} {
		if got := DWARFName(n); got != name {
			t.Errorf("register %d is %q, want %q", n, got, name)
		}
	}
	for r := RAX; r <= R15; r++ {
		if back, ok := RegFromDWARF(r.DWARF()); !ok || back != r {
			t.Errorf("%v has DWARF number %d, which is %v, %v", r, r.DWARF(), back, ok)
		}
		if DWARFName(r.DWARF()) != r.String() {
			t.Errorf("%v is called %q by its DWARF number", r, DWARFName(r.DWARF()))
		}
	}
	for _, n := range []int{-1, DWARFReturnAddress, 17, DWARFRFlags, 1 << 40} {
		if r, ok := RegFromDWARF(n); ok {
			t.Errorf("DWARF number %d is the general register %v", n, r)
		}
	}
}

func TestRegBeyondTheLast(t *testing.T) {
	r := Reg(16)
	if r.String() != "reg(16)" || r.DWARF() != -1 || r.Mask() != 0 {
		t.Errorf("%q, DWARF number %d, mask %#x", r, r.DWARF(), r.Mask())
	}
	if nop := mustDecode(t, "90"); nop.WritesReg(r) {
		t.Error("nop writes a register that there is not")
	}
}

func TestKindsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for k := Other; k <= XBegin; k++ {
		if seen[k.String()] || k.String() == "" || k.String() == "unknown kind" {
			t.Errorf("kind %d is called %q", k, k)
		}
		seen[k.String()] = true
	}
	if Kind(200).String() != "unknown kind" {
		t.Errorf("kind 200 is called %q", Kind(200))
	}
}
