package arm64

import (
	"errors"
	"testing"
)

func TestWordsAreWhatTheManualSays(t *testing.T) {
	for _, c := range []struct {
		name         string
		word         uint32
		kind         Kind
		class        Class
		ends, moves  bool
		pad          bool
		delta        int
		known, fault bool
	}{
		{"b .+4", 0x14000001, Jump, BranchImm, true, false, false, 0, true, false},
		{"bl .-4", 0x97FFFFFF, Call, BranchImm, false, false, false, 0, true, false},
		{"b.eq .+8", 0x54000040, CondJump, BranchCond, false, false, false, 0, true, false},
		{"bc.eq .+8", 0x54000050, CondJump, BranchCond, false, false, false, 0, true, false},
		{"cbz x0, .+8", 0xB4000040, CondJump, CompareZero, false, false, false, 0, true, false},
		{"tbnz w0, #3, .+8", 0x37180040, CondJump, TestBit, false, false, false, 0, true, false},
		{"br x16", 0xD61F0200, IndirectJump, BranchReg, true, true, false, 0, true, false},
		{"blr x8", 0xD63F0100, IndirectCall, BranchReg, false, false, false, 0, true, false},
		{"ret", 0xD65F03C0, Return, BranchReg, true, true, false, 0, true, false},
		{"ret x1", 0xD65F0020, Return, BranchReg, true, true, false, 0, true, false},
		{"retaa", 0xD65F0BFF, Return, BranchAuth, true, true, false, 0, true, true},
		{"retaasppc .-8", 0x5500005F, Return, BranchAuthPC, true, false, false, 0, true, true},
		{"retaasppcr x1", 0xD65F0BE1, Return, BranchAuthPC, true, false, false, 0, true, true},
		{"braa x1, x2", 0xD71F0822, IndirectJump, BranchAuth, true, true, false, 0, true, true},
		{"eret", 0xD69F03E0, ExceptionReturn, BranchReg, true, true, false, 0, true, true},
		{"svc #0", 0xD4000001, Syscall, Exception, false, true, false, 0, true, false},
		{"brk #1", 0xD4200020, Breakpoint, Exception, true, true, true, 0, true, true},
		{"hlt #1", 0xD4400020, Breakpoint, Exception, true, true, true, 0, true, true},
		{"udf #0", 0x00000000, Undefined, Reserved, true, true, false, 0, true, true},
		{"nop", 0xD503201F, Other, Hint, false, true, false, 0, true, false},
		{"bti", 0xD503241F, Other, LandingPad, false, true, false, 0, true, false},
		{"bti c", 0xD503245F, Other, LandingPad, false, true, true, 0, true, false},
		{"bti j", 0xD503249F, Other, LandingPad, false, true, true, 0, true, false},
		{"bti jc", 0xD50324DF, Other, LandingPad, false, true, true, 0, true, false},
		{"paciasp", 0xD503233F, Other, Sign, false, true, true, 0, true, false},
		{"pacibsp", 0xD503237F, Other, Sign, false, true, true, 0, true, false},
		{"paciaz", 0xD503231F, Other, Sign, false, true, false, 0, true, false},
		{"autiasp", 0xD50323BF, Other, Authenticate, false, true, false, 0, true, true},
		{"xpaclri", 0xD50320FF, Other, Strip, false, true, false, 0, true, false},
		{"paciasppc", 0xDAC1A3FE, Other, SignPC, false, false, false, 0, true, true},
		{"adr x0, .+4", 0x10000020, Other, Address, false, false, false, 0, true, false},
		{"adrp x0, .+4096", 0xB0000000, Other, Address, false, false, false, 0, true, false},
		{"ldr x0, .+8", 0x58000040, Other, LoadLiteral, false, false, false, 0, true, true},
		{"prfm pldl1keep, .+8", 0xD8000040, Other, LoadLiteral, false, false, false, 0, true, false},
		{"sub sp, sp, #32", 0xD10083FF, Other, AddSubImm, false, true, false, -32, true, false},
		{"sub sp, sp, #1, lsl #12", 0xD14007FF, Other, AddSubImm, false, true, false, -4096, true, false},
		{"add sp, sp, #32", 0x910083FF, Other, AddSubImm, false, true, false, 32, true, false},
		{"mov sp, x29", 0x910003BF, Other, AddSubImm, false, true, false, 0, false, false},
		{"sub sp, sp, x0", 0xCB2063FF, Other, Plain, false, true, false, 0, false, false},
		{"stp x29, x30, [sp, #-32]!", 0xA9BE7BFD, Other, StorePair, false, true, false, -32, true, false},
		{"ldp x29, x30, [sp], #32", 0xA8C27BFD, Other, LoadPair, false, true, false, 32, true, false},
		{"ldr x0, [sp], #16", 0xF84107E0, Other, Load, false, true, false, 16, true, false},
		{"str x0, [sp, #-16]", 0xF81F03E0, Other, Store, false, true, false, 0, true, true},
		{"ldr x0, [x1]", 0xF9400020, Other, Load, false, true, false, 0, true, true},
		{"ldxr x0, [x1]", 0xC85F7C20, Other, Exclusive, false, true, false, 0, true, true},
		{"ldar x0, [x1]", 0xC8DFFC20, Other, Ordered, false, true, false, 0, true, true},
		{"ldadd x0, x1, [x2]", 0xF8200041, Other, Atomic, false, true, false, 0, true, true},
		{"cpyfp [x0]!, [x1]!, x2!", 0x19010440, Other, MemoryCopy, false, true, false, 0, true, true},
		{"mrs x0, tpidr_el0", 0xD53BD040, Other, MoveFromSystem, false, true, false, 0, true, true},
		{"msr nzcv, x0", 0xD51B4200, Other, MoveToSystem, false, true, false, 0, true, true},
		{"ptrue p0.b", 0x2518E3E0, Other, SVE, false, true, false, 0, true, true},
		{"zero {za}", 0xC00800FF, Other, SME, false, true, false, 0, false, true},
		{"fadd d0, d1, d2", 0x1E622820, Other, Vector, false, true, false, 0, true, false},
	} {
		var i Inst
		if err := DecodeWord(&i, c.word); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		delta, known := i.StackDelta()
		if i.Kind != c.kind || i.Class != c.class || i.Ends() != c.ends || i.Movable() != c.moves || i.IsLandingPad() != c.pad {
			t.Errorf("%s: %v, %v, ends %v, moves %v, landing pad %v", c.name, i.Kind, i.Class, i.Ends(), i.Movable(), i.IsLandingPad())
		}
		if known != c.known || delta != c.delta || i.MayFault() != c.fault {
			t.Errorf("%s: moves the stack by %d, known %v; faults %v", c.name, delta, known, i.MayFault())
		}
	}
}

func TestSystemRegistersAreTold(t *testing.T) {
	for word, want := range map[uint32]SystemRegister{0xD53BD040: SystemTPIDR, 0xD51B4200: SystemNZCV, 0xD53BE040: SystemCNTVCT, 0xD53BE0C0: SystemCNTVCTSS, 0xD53BE000: SystemCNTFRQ} {
		var i Inst
		if err := DecodeWord(&i, word); err != nil || i.SystemRegister() != want {
			t.Errorf("%08x: %v, system register %#x, want %#x", word, err, i.SystemRegister(), want)
		}
	}
}

func TestUnknownWordsAreRefused(t *testing.T) {
	for name, word := range map[string]uint32{
		"reserved":                     0x00010000,
		"unallocated":                  0x20000000,
		"branch of a later extension":  0x74000000,
		"bitmask of all ones":          0x9240FC00,
		"move wide, 32 bits by 48":     0x12E00000,
		"vector with size 3":           0x0EE0B400,
		"branch to register, op2 of 0": 0xD6000000,
	} {
		if i, err := Decode([]byte{byte(word), byte(word >> 8), byte(word >> 16), byte(word >> 24)}); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v, %v", name, i.Class, err)
		}
	}
	if _, err := Decode([]byte{0, 0, 0}); !errors.Is(err, ErrTruncated) {
		t.Errorf("three bytes: %v", err)
	}
}

func TestDecodeDoesNotAllocate(t *testing.T) {
	var i Inst
	word := uint32(0)
	if n := testing.AllocsPerRun(1000, func() {
		word = word*1664525 + 1013904223
		_ = DecodeWord(&i, word)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
