package amd64

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// unhex reads bytes written as hexadecimal digits and blanks.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// mustDecode decodes an instruction that has to take up all of s.
func mustDecode(t testing.TB, s string) Inst {
	t.Helper()
	b := unhex(t, s)
	i, err := Decode(b)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	if int(i.Len) != len(b) {
		t.Fatalf("%s: length %d", s, i.Len)
	}
	return i
}

// describe writes the operands of an instruction for comparison: reg and rm, memory, immediate, branch, with value@offset:size.
func describe(i Inst) string {
	var parts []string
	say := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if i.HasModRM {
		say("reg%d", i.Reg)
		if i.Mod == 3 {
			say("rm%d", i.RM)
		}
	}
	if i.V != 0 {
		say("v%d", i.V)
	}
	if i.HasMem {
		base := "-"
		switch {
		case i.Base == RIP:
			base = "rip"
		case i.Base >= 0:
			base = Reg(i.Base).String()
		}
		if i.Index != NoReg {
			base += fmt.Sprintf("+%d*%d", i.Index, i.Scale)
		}
		if i.DispSize != 0 {
			base += fmt.Sprintf("%+d@%d:%d", i.Disp, i.DispOff, i.DispSize)
		}
		say("[%s]", base)
	}
	if i.ImmSize != 0 {
		say("imm%d@%d:%d", i.Imm, i.ImmOff, i.ImmSize)
	}
	if i.RelSize != 0 {
		say("rel%+d@%d:%d", i.Rel, i.RelOff, i.RelSize)
	}
	return strings.Join(parts, " ")
}

func TestDecodeEveryClassOfEncoding(t *testing.T) {
	for _, c := range []struct {
		code, name string
		kind       Kind
		encoding   Encoding
		opmap      uint8
		opcode     uint8
		operands   string
	}{
		// The one-byte map: ModRM, SIB and displacement.
		{"90", "nop", Other, Legacy, 0, 0x90, ""},
		{"89 c8", "mov eax, ecx", Other, Legacy, 0, 0x89, "reg1 rm0"},
		{"4d 89 c8", "mov r8, r9", Other, Legacy, 0, 0x89, "reg9 rm8"},
		{"8b 00", "mov eax, [rax]", Other, Legacy, 0, 0x8B, "reg0 [rax]"},
		{"8b 45 f8", "mov eax, [rbp-8]", Other, Legacy, 0, 0x8B, "reg0 [rbp-8@2:1]"},
		{"8b 80 00 01 00 00", "mov eax, [rax+256]", Other, Legacy, 0, 0x8B, "reg0 [rax+256@2:4]"},
		{"8b 04 24", "mov eax, [rsp]", Other, Legacy, 0, 0x8B, "reg0 [rsp]"},
		{"41 8b 04 24", "mov eax, [r12]", Other, Legacy, 0, 0x8B, "reg0 [r12]"},
		{"41 8b 45 00", "mov eax, [r13+0]", Other, Legacy, 0, 0x8B, "reg0 [r13+0@3:1]"},
		{"8b 44 8a 10", "mov eax, [rdx+rcx*4+16]", Other, Legacy, 0, 0x8B, "reg0 [rdx+1*4+16@3:1]"},
		{"42 8b 04 a0", "mov eax, [rax+r12*4]", Other, Legacy, 0, 0x8B, "reg0 [rax+12*4]"},
		{"8b 04 25 00 10 00 00", "mov eax, [0x1000]", Other, Legacy, 0, 0x8B, "reg0 [-+4096@3:4]"},
		{"8b 04 cd 08 00 00 00", "mov eax, [rcx*8+8]", Other, Legacy, 0, 0x8B, "reg0 [-+1*8+8@3:4]"},
		{"48 8b 05 10 00 00 00", "mov rax, [rip+16]", Other, Legacy, 0, 0x8B, "reg0 [rip+16@3:4]"},
		{"49 8b 05 10 00 00 00", "mov rax, [rip+16], REX.B without effect", Other, Legacy, 0, 0x8B, "reg0 [rip+16@3:4]"},
		{"48 c7 05 10 00 00 00 ff ff ff ff", "mov qword [rip+16], -1", Other, Legacy, 0, 0xC7, "reg0 [rip+16@3:4] imm-1@7:4"},
		// Immediates, with the prefixes that change them.
		{"05 01 00 00 00", "add eax, 1", Other, Legacy, 0, 0x05, "imm1@1:4"},
		{"66 05 01 00", "add ax, 1", Other, Legacy, 0, 0x05, "imm1@2:2"},
		{"66 48 05 01 00 00 00", "add rax, 1: REX.W goes before 66", Other, Legacy, 0, 0x05, "imm1@3:4"},
		{"66 81 c1 34 12", "add cx, 0x1234", Other, Legacy, 0, 0x81, "reg0 rm1 imm4660@3:2"},
		{"66 c7 00 34 12", "mov word [rax], 0x1234", Other, Legacy, 0, 0xC7, "reg0 [rax] imm4660@3:2"},
		{"66 69 c0 34 12", "imul ax, ax, 0x1234", Other, Legacy, 0, 0x69, "reg0 rm0 imm4660@3:2"},
		{"66 68 34 12", "push word", Other, Legacy, 0, 0x68, "imm4660@2:2"},
		{"83 c4 f0", "add esp, -16", Other, Legacy, 0, 0x83, "reg0 rm4 imm-16@2:1"},
		{"b8 01 00 00 00", "mov eax, 1", Other, Legacy, 0, 0xB8, "imm1@1:4"},
		{"66 b8 01 00", "mov ax, 1", Other, Legacy, 0, 0xB8, "imm1@2:2"},
		{"49 b8 01 02 03 04 05 06 07 08", "movabs r8", Other, Legacy, 0, 0xB8, "imm578437695752307201@2:8"},
		{"f6 c1 80", "test cl, 0x80", Other, Legacy, 0, 0xF6, "reg0 rm1 imm-128@2:1"},
		{"f6 d1", "not cl", Other, Legacy, 0, 0xF6, "reg2 rm1"},
		{"f7 c1 01 00 00 00", "test ecx, 1", Other, Legacy, 0, 0xF7, "reg0 rm1 imm1@2:4"},
		{"66 f7 c9 01 00", "test cx, 1 by its second name", Other, Legacy, 0, 0xF7, "reg1 rm1 imm1@3:2"},
		{"48 f7 f9", "idiv rcx", Other, Legacy, 0, 0xF7, "reg7 rm1"},
		{"a0 01 02 03 04 05 06 07 08", "mov al, [abs]", Other, Legacy, 0, 0xA0, "[-] imm578437695752307201@1:8"},
		{"67 a1 01 02 03 84", "mov eax, [abs32]", Other, Legacy, 0, 0xA1, "[-] imm2214789633@2:4"},
		{"c8 10 80 01", "enter 0x8010, 1", Other, Legacy, 0, 0xC8, "imm98320@1:3"},
		{"e4 80", "in al, 0x80", Other, Legacy, 0, 0xE4, "imm128@1:1"},
		// Flow.
		{"eb fe", "jmp .", Jump, Legacy, 0, 0xEB, "rel-2@1:1"},
		{"e9 00 01 00 00", "jmp", Jump, Legacy, 0, 0xE9, "rel+256@1:4"},
		{"66 e9 00 01 00 00", "jmp: 66 does not shorten it", Jump, Legacy, 0, 0xE9, "rel+256@2:4"},
		{"74 05", "je", CondJump, Legacy, 0, 0x74, "rel+5@1:1"},
		{"2e 74 05", "je with a hint", CondJump, Legacy, 0, 0x74, "rel+5@2:1"},
		{"0f 84 00 ff ff ff", "je", CondJump, Legacy, 1, 0x84, "rel-256@2:4"},
		{"e2 f0", "loop", ShortLoop, Legacy, 0, 0xE2, "rel-16@1:1"},
		{"67 e3 f0", "jecxz", ShortLoop, Legacy, 0, 0xE3, "rel-16@2:1"},
		{"e8 00 00 00 00", "call", Call, Legacy, 0, 0xE8, "rel+0@1:4"},
		{"66 66 48 e8 00 00 00 00", "call as the linker's TLS sequence has it", Call, Legacy, 0, 0xE8, "rel+0@4:4"},
		{"67 e8 00 00 00 00", "call as relaxed by the linker", Call, Legacy, 0, 0xE8, "rel+0@2:4"},
		{"f2 e8 00 00 00 00", "bnd call", Call, Legacy, 0, 0xE8, "rel+0@2:4"},
		{"ff d0", "call rax", IndirectCall, Legacy, 0, 0xFF, "reg2 rm0"},
		{"ff 15 00 00 00 00", "call [rip]", IndirectCall, Legacy, 0, 0xFF, "reg2 [rip+0@2:4]"},
		{"41 ff e3", "jmp r11", IndirectJump, Legacy, 0, 0xFF, "reg4 rm11"},
		{"3e ff e0", "notrack jmp rax", IndirectJump, Legacy, 0, 0xFF, "reg4 rm0"},
		{"f2 ff 25 00 00 00 00", "bnd jmp [rip]", IndirectJump, Legacy, 0, 0xFF, "reg4 [rip+0@3:4]"},
		{"c3", "ret", Return, Legacy, 0, 0xC3, ""},
		{"f3 c3", "rep ret", Return, Legacy, 0, 0xC3, ""},
		{"f2 c3", "bnd ret", Return, Legacy, 0, 0xC3, ""},
		{"c2 08 80", "ret 0x8008", Return, Legacy, 0, 0xC2, "imm32776@1:2"},
		{"cb", "lret", FarBranch, Legacy, 0, 0xCB, ""},
		{"48 cf", "iretq", FarBranch, Legacy, 0, 0xCF, ""},
		{"ff 28", "ljmp [rax]", FarBranch, Legacy, 0, 0xFF, "reg5 [rax]"},
		{"0f 05", "syscall", Syscall, Legacy, 1, 0x05, ""},
		{"cd 80", "int 0x80", Syscall, Legacy, 0, 0xCD, "imm128@1:1"},
		{"cc", "int3", Breakpoint, Legacy, 0, 0xCC, ""},
		{"0f 0b", "ud2", Undefined, Legacy, 1, 0x0B, ""},
		{"0f b9 c8", "ud1", Undefined, Legacy, 1, 0xB9, "reg1 rm0"},
		{"67 0f b9 40 02", "ud1 as sanitizers write it", Undefined, Legacy, 1, 0xB9, "reg0 [rax+2@4:1]"},
		{"f4", "hlt", Halt, Legacy, 0, 0xF4, ""},
		{"c7 f8 10 00 00 00", "xbegin", XBegin, Legacy, 0, 0xC7, "reg7 rm0 rel+16@2:4"},
		{"66 c7 f8 f0 ff", "xbegin with 66, the one branch that it shortens", XBegin, Legacy, 0, 0xC7, "reg7 rm0 rel-16@3:2"},
		{"c6 f8 01", "xabort", Other, Legacy, 0, 0xC6, "reg7 rm0 imm1@2:1"},
		// The maps behind 0F.
		{"0f 1f 84 00 00 00 00 00", "nop", Other, Legacy, 1, 0x1F, "reg0 [rax+0*1+0@4:4]"},
		{"66 2e 0f 1f 84 00 00 00 00 00", "cs nopw", Other, Legacy, 1, 0x1F, "reg0 [rax+0*1+0@6:4]"},
		{"f3 0f 1e fa", "endbr64", Other, Legacy, 1, 0x1E, "reg7 rm2"},
		{"f3 48 0f 1e c8", "rdsspq rax", Other, Legacy, 1, 0x1E, "reg1 rm0"},
		{"f3 0f c7 f8", "rdpid rax", Other, Legacy, 1, 0xC7, "reg7 rm0"},
		{"0f a4 c8 05", "shld", Other, Legacy, 1, 0xA4, "reg1 rm0 imm5@3:1"},
		{"41 0f c9", "bswap r9d", Other, Legacy, 1, 0xC9, ""},
		{"44 0f 20 c0", "mov rax, cr8", Other, Legacy, 1, 0x20, "reg8 rm0"},
		{"66 0f 78 c1 04 08", "extrq xmm1, 4, 8", Other, Legacy, 1, 0x78, "reg0 rm1 imm2052@4:2"},
		{"f2 0f 78 ca 04 08", "insertq xmm1, xmm2, 4, 8", Other, Legacy, 1, 0x78, "reg1 rm2 imm2052@4:2"},
		{"f2 0f 38 f1 c1", "crc32", Other, Legacy, 2, 0xF1, "reg0 rm1"},
		{"66 0f 3a 0f c1 04", "palignr", Other, Legacy, 3, 0x0F, "reg0 rm1 imm4@5:1"},
		{"66 0f 3a 0f 05 00 00 00 00 04", "palignr [rip]", Other, Legacy, 3, 0x0F, "reg0 [rip+0@5:4] imm4@9:1"},
		{"0f 0f c1 9e", "pfadd", Other, Legacy, 15, 0x9E, "reg0 rm1"},
		{"0f 0f 05 00 00 00 00 b7", "pmulhrw [rip]", Other, Legacy, 15, 0xB7, "reg0 [rip+0@3:4]"},
		{"db e3", "fninit", Other, Legacy, 0, 0xDB, "reg4 rm3"},
		{"d9 3c 24", "fnstcw [rsp]", Other, Legacy, 0, 0xD9, "reg7 [rsp]"},
		{"f0 48 0f b1 0d 00 00 00 00", "lock cmpxchg [rip], rcx", Other, Legacy, 1, 0xB1, "reg1 [rip+0@5:4]"},
		// VEX.
		{"c5 f8 77", "vzeroupper", Other, VEX, 1, 0x77, ""},
		{"c5 f8 28 05 10 00 00 00", "vmovaps xmm0, [rip+16]", Other, VEX, 1, 0x28, "reg0 [rip+16@4:4]"},
		{"c5 39 fe c1", "vpaddd xmm8, xmm8, xmm1", Other, VEX, 1, 0xFE, "reg8 rm1 v8"},
		{"c5 f9 70 c1 1b", "vpshufd", Other, VEX, 1, 0x70, "reg0 rm1 imm27@4:1"},
		{"c4 c1 7a 6f 4c 24 08", "vmovdqu xmm1, [r12+8]", Other, VEX, 1, 0x6F, "reg1 [r12+8@6:1]"},
		{"c4 e2 f8 f2 c1", "andn rax, rax, rcx", Other, VEX, 2, 0xF2, "reg0 rm1"},
		{"c4 e3 fb f0 c1 07", "rorx rax, rcx, 7", Other, VEX, 3, 0xF0, "reg0 rm1 imm7@5:1"},
		{"c4 e3 71 0f 05 00 00 00 00 04", "vpalignr [rip]", Other, VEX, 3, 0x0F, "reg0 v1 [rip+0@5:4] imm4@9:1"},
		{"c4 e2 69 90 04 a1", "vpgatherdd xmm0, [rcx+xmm4*4], xmm2", Other, VEX, 2, 0x90, "reg0 v2 [rcx+4*4]"},
		{"c4 a2 e9 93 0c e0", "vgatherqpd xmm1, [rax+xmm12*8], xmm2", Other, VEX, 2, 0x93, "reg1 v2 [rax+12*8]"},
		// EVEX.
		{"62 f1 7c 48 28 05 10 00 00 00", "vmovaps zmm0, [rip+16]", Other, EVEX, 1, 0x28, "reg0 [rip+16@6:4]"},
		{"62 f1 7c 48 28 40 01", "vmovaps zmm0, [rax+64], displacement as encoded", Other, EVEX, 1, 0x28, "reg0 [rax+1@6:1]"},
		{"62 01 7c 48 28 ff", "vmovaps zmm31, zmm31", Other, EVEX, 1, 0x28, "reg31 rm31"},
		{"62 f1 75 40 fe c2", "vpaddd zmm0, zmm17, zmm2", Other, EVEX, 1, 0xFE, "reg0 rm2 v17"},
		{"62 f3 75 48 25 c2 ff", "vpternlogd", Other, EVEX, 3, 0x25, "reg0 rm2 v1 imm-1@6:1"},
		{"62 f1 75 48 72 f2 05", "vpslld zmm1, zmm2, 5", Other, EVEX, 1, 0x72, "reg6 rm2 v1 imm5@6:1"},
		{"62 f2 7d 41 90 04 a1", "vpgatherdd zmm0{k1}, [rcx+zmm20*4]", Other, EVEX, 2, 0x90, "reg0 [rcx+20*4]"},
		{"62 f5 74 48 58 c2", "vaddph", Other, EVEX, 5, 0x58, "reg0 rm2 v1"},
		{"62 f6 75 48 98 c2", "vfmadd132ph", Other, EVEX, 6, 0x98, "reg0 rm2 v1"},
		// XOP.
		{"8f e9 70 01 c8", "blcfill's group: blcs… ecx, eax", Other, XOP, 9, 0x01, "reg1 rm0 v1"},
		{"8f e8 78 c0 c1 05", "vprotb xmm0, xmm1, 5", Other, XOP, 8, 0xC0, "reg0 rm1 imm5@5:1"},
		{"8f ea 78 10 c1 04 08 00 00", "bextr eax, ecx, 0x804", Other, XOP, 10, 0x10, "reg0 rm1 imm2052@5:4"},
		{"8f c0", "pop rax, the long way", Other, Legacy, 0, 0x8F, "reg0 rm0"},
		{"8f 44 24 08", "pop [rsp+8]", Other, Legacy, 0, 0x8F, "reg0 [rsp+8@3:1]"},
		// Prefixes.
		{"48 66 90", "a REX prefix that does not count", Other, Legacy, 0, 0x90, ""},
		{"64 48 8b 04 25 00 00 00 00", "mov rax, fs:0", Other, Legacy, 0, 0x8B, "reg0 [-+0@5:4]"},
		{"66 66 66 66 66 66 66 66 66 66 66 66 66 66 90", "fifteen bytes", Other, Legacy, 0, 0x90, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := mustDecode(t, c.code)
			if i.Kind != c.kind || i.Encoding != c.encoding || i.Map != c.opmap || i.Opcode != c.opcode {
				t.Errorf("%s: kind %v, encoding %d, map %d, opcode %#x", c.code, i.Kind, i.Encoding, i.Map, i.Opcode)
			}
			if got := describe(i); got != c.operands {
				t.Errorf("%s: operands\n got %s\nwant %s", c.code, got, c.operands)
			}
			if b := unhex(t, c.code); b[i.OpcodeOff] != i.Opcode {
				t.Errorf("%s: OpcodeOff %d", c.code, i.OpcodeOff)
			}
		})
	}
}

func TestRefusesWhatIsNoInstruction(t *testing.T) {
	for name, code := range map[string]string{
		"push es":                    "06",
		"aaa":                        "37",
		"pusha":                      "60",
		"82":                         "82 c0 01",
		"far call":                   "9a 00 00 00 00 00 00",
		"far jmp":                    "ea 00 00 00 00 00 00",
		"into":                       "ce",
		"aam":                        "d4 0a",
		"REX2":                       "d5 00 90",
		"salc":                       "d6",
		"0f 04":                      "0f 04",
		"0f ff group":                "ff f8",
		"ff /7 mem":                  "ff 38",
		"fe /2":                      "fe d0",
		"lea of a register":          "8d c0",
		"mov cs":                     "8e c8",
		"segment 7":                  "8c f8",
		"popcnt without F3":          "0f b8 c1",
		"pmulld without 66":          "0f 38 40 c1",
		"lock mov":                   "f0 89 08",
		"lock add of a register":     "f0 01 c8",
		"lock cmp":                   "f0 39 08",
		"REX before VEX":             "48 c5 f8 77",
		"66 before VEX":              "66 c5 f8 77",
		"F3 before EVEX":             "f3 62 f1 7c 48 28 c0",
		"VEX map 0":                  "c4 e0 78 28 c0",
		"VEX map 4":                  "c4 e4 78 28 c0",
		"VEX without such an opcode": "c4 e2 78 f4 c0",
		"EVEX map 4 (APX)":           "62 f4 7c 48 28 c0",
		"EVEX, reserved bit":         "62 f9 7c 48 28 c0",
		"EVEX, reserved 1":           "62 f1 78 48 28 c0",
		"XOP map 11":                 "8f eb 78 10 c1 00 00 00 00",
		"XOP without such an opcode": "8f c8 78 00 c0",
		"pop /4":                     "8f e0",
		"3DNow! without such":        "0f 0f c1 00",
		"gather without SIB":         "c4 e2 69 90 00",
		"gather of a register":       "c4 e2 69 90 c4",
		"frstpm":                     "db e5",
		"fifteen prefixes":           "66 66 66 66 66 66 66 66 66 66 66 66 66 66 66",
		"sixteen bytes":              "66 66 66 66 66 66 66 66 66 66 66 66 66 66 66 90",
		"sixteen bytes by immediate": "2e 2e 2e 2e 2e 48 c7 80 00 00 00 00 00 00 00 00",
	} {
		b := unhex(t, code)
		i, err := Decode(b)
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s (%s): %v, length %d", name, code, err, i.Len)
		}
		if i != (Inst{}) {
			t.Errorf("%s (%s): an Inst beside the error: %+v", name, code, i)
		}
		// In the midst of code it is no different.
		if _, err := Decode(append(b, make([]byte, 64)...)); !errors.Is(err, ErrInvalid) && name != "fifteen prefixes" {
			t.Errorf("%s (%s) before more bytes: %v", name, code, err)
		}
	}
}

func TestSaysWhenBytesAreMissing(t *testing.T) {
	for _, code := range []string{
		"48 c7 84 24 00 01 00 00 78 56 34 12", "49 b8 01 02 03 04 05 06 07 08", "c4 e3 71 0f 05 00 00 00 00 04", "62 f1 7c 48 28 05 10 00 00 00",
		"8f ea 78 10 c1 04 08 00 00", "0f 0f 05 00 00 00 00 b7", "66 2e 0f 1f 84 00 00 00 00 00", "c8 10 80 01", "f3 0f 1e fa", "c5 f8 77",
		"66 66 66 66 66 66 66 66 66 66 66 66 66 66 90", "0f 84 00 ff ff ff", "f0 48 0f b1 0d 00 00 00 00", "c4 e2 69 90 04 a1",
	} {
		b := unhex(t, code)
		mustDecode(t, code)
		for n := range b {
			if i, err := Decode(b[:n]); !errors.Is(err, ErrTruncated) || i != (Inst{}) {
				t.Errorf("%s: the first %d bytes: %+v, %v", code, n, i, err)
			}
		}
	}
}

func TestDecodeDoesNotAllocate(t *testing.T) {
	code := unhex(t, "48 8b 05 10 00 00 00 06 66")
	n := testing.AllocsPerRun(100, func() {
		for at := range code {
			_, _ = Decode(code[at:])
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestPrefixes(t *testing.T) {
	for _, c := range []struct {
		code     string
		prefixes Prefixes
		rex      REX
		notrack  bool
	}{
		{"90", 0, 0, false},
		{"f3 90", RepF3, 0, false},
		{"f2 f3 a4", RepF3, 0, false}, // the last one counts
		{"f3 f2 a4", RepneF2, 0, false},
		{"f0 01 08", LockF0, 0, false},
		{"66 67 8b 00", Opsize66 | Addr67, 0, false},
		{"64 65 8b 00", SegGS, 0, false},
		{"65 64 8b 00", SegFS, 0, false},
		{"64 3e ff e0", SegFS | SegDS3E, 0, true},
		{"3e ff 10", SegDS3E, 0, true},
		{"3e 8b 00", SegDS3E, 0, false},
		{"2e 36 26 8b 00", SegCS2E | SegSS36 | SegES26, 0, false},
		{"4f 8b 00", 0, RexPresent | RexW | RexR | RexX | RexB, false},
		{"40 88 f0", 0, RexPresent, false},
		{"c4 41 fd 6f c0", Opsize66, RexW | RexR | RexB, false},
		{"c5 7a 6f c0", RepF3, RexR, false},
		{"c5 fb 10 00", RepneF2, 0, false},
		{"62 f1 fd 48 6f c0", Opsize66, RexW, false},
	} {
		i := mustDecode(t, c.code)
		if i.Prefixes != c.prefixes || i.REX != c.rex || i.Notrack != c.notrack {
			t.Errorf("%s: prefixes %#x, REX %#x, notrack %v", c.code, i.Prefixes, i.REX, i.Notrack)
		}
	}
}
