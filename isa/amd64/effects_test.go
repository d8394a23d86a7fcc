package amd64

import (
	"strings"
	"testing"
)

// registers turns names into a mask.
func registers(t *testing.T, names string) uint16 {
	t.Helper()
	var m uint16
	for _, name := range strings.Fields(names) {
		found := false
		for r := RAX; r <= R15; r++ {
			if r.String() == name {
				m |= r.Mask()
				found = true
			}
		}
		if !found {
			t.Fatalf("no register %q", name)
		}
	}
	return m
}

func TestFlags(t *testing.T) {
	const (
		neither = ""
		reads   = "reads"
		writes  = "writes"
	)
	for _, c := range []struct{ code, name, want string }{
		{"01 c8", "add", writes}, {"29 c8", "sub", writes}, {"39 c8", "cmp", writes}, {"31 c0", "xor", writes}, {"3c 05", "cmp al", writes},
		{"11 c8", "adc", reads}, {"19 c8", "sbb", reads}, {"15 01 00 00 00", "adc eax", reads}, {"83 d0 01", "adc imm8", reads},
		{"83 e8 01", "sub imm8", writes}, {"83 f8 01", "cmp imm8", writes}, {"80 38 00", "cmp byte", writes},
		{"85 c0", "test", writes}, {"a8 01", "test al", writes}, {"f7 c1 01 00 00 00", "test imm", writes},
		{"f7 d0", "not", neither}, {"f7 d8", "neg", writes}, {"f7 e1", "mul", writes}, {"f7 f1", "div", writes}, {"0f af c1", "imul", writes},
		{"ff c0", "inc keeps CF", neither}, {"ff c8", "dec keeps CF", neither},
		{"c1 e0 05", "shl 5", writes}, {"c1 e0 00", "shl 0", neither}, {"c1 e0 20", "shl 32 is shl 0", neither}, {"48 c1 e0 20", "shl 32 of 64", writes},
		{"d1 e0", "shl 1", writes}, {"d3 e0", "shl cl", neither}, {"c1 c0 05", "rol", neither}, {"d1 d0", "rcl", reads}, {"c1 d8 03", "rcr", reads},
		{"0f a4 c8 05", "shld", writes}, {"0f a5 c8", "shld cl", neither}, {"0f a3 c8", "bt", neither}, {"0f ba e0 05", "bt imm", neither},
		{"74 00", "je", reads}, {"0f 84 00 00 00 00", "je rel32", reads}, {"0f 94 c0", "sete", reads}, {"0f 44 c1", "cmove", reads},
		{"e3 00", "jrcxz", neither}, {"e2 00", "loop", neither}, {"e1 00", "loope", reads}, {"e0 00", "loopne", reads},
		{"9c", "pushf", reads}, {"9d", "popf", writes}, {"9f", "lahf", reads}, {"9e", "sahf keeps OF", neither},
		{"f5", "cmc", reads}, {"f8", "clc", neither}, {"f9", "stc", neither}, {"fc", "cld", neither},
		{"a6", "cmps", writes}, {"f3 a6", "repe cmps", neither}, {"ae", "scas", writes}, {"f2 ae", "repne scas", neither}, {"f3 a4", "rep movs", neither},
		{"0f 2e c1", "ucomiss", writes}, {"66 0f 2f c1", "comisd", writes}, {"c5 f9 2e c1", "vucomisd", writes}, {"62 f1 7c 08 2e c1", "vucomiss evex", writes},
		{"66 0f 38 17 c1", "ptest", writes}, {"c4 e2 7d 17 c1", "vptest", writes}, {"c5 f8 98 c1", "kortest", writes},
		{"f3 0f b8 c1", "popcnt", writes}, {"0f bc c1", "bsf", writes}, {"f3 0f bc c1", "tzcnt", writes}, {"f3 0f bd c1", "lzcnt", writes},
		{"f0 0f b1 0f", "cmpxchg", writes}, {"0f c1 c8", "xadd", writes}, {"0f c7 0f", "cmpxchg8b", neither}, {"0f c7 f0", "rdrand", writes},
		{"f3 0f c7 f8", "rdpid", neither}, {"66 0f 38 f6 c1", "adcx", reads}, {"f3 0f 38 f6 c1", "adox", reads}, {"f2 0f 38 f1 c1", "crc32", neither},
		{"c4 e2 f8 f2 c1", "andn", writes}, {"c4 e2 f8 f3 c9", "blsr", writes}, {"c4 e2 f0 f5 c1", "bzhi", writes}, {"c4 e2 f3 f5 c1", "pdep", neither},
		{"c4 e2 f3 f6 c1", "mulx", neither}, {"c4 e2 f2 f7 c1", "sarx", neither}, {"c4 e2 f0 f7 c1", "bextr", writes}, {"c4 e3 fb f0 c1 07", "rorx", neither},
		{"66 0f 3a 63 c1 0c", "pcmpistri", writes}, {"da c1", "fcmovb", reads}, {"d8 c1", "fadd", neither},
		{"89 c8", "mov", neither}, {"8d 00", "lea", neither}, {"50", "push", neither}, {"90", "nop", neither}, {"f3 0f 1e fa", "endbr64", neither},
		{"c3", "ret", neither}, {"e8 00 00 00 00", "call", neither}, {"e9 00 00 00 00", "jmp", neither},
		{"0f 05", "syscall saves them in r11", reads}, {"cd 80", "int", reads}, {"cc", "int3", reads}, {"0f 0b", "ud2", reads},
	} {
		i := mustDecode(t, c.code)
		got := neither
		switch {
		case i.FlagsRead() && i.FlagsWritten():
			got = "both"
		case i.FlagsRead():
			got = reads
		case i.FlagsWritten():
			got = writes
		}
		if got != c.want {
			t.Errorf("%s (%s): %q, want %q", c.name, c.code, got, c.want)
		}
	}
}

func TestStackDelta(t *testing.T) {
	const unknown = 1 << 20
	for _, c := range []struct {
		code, name string
		want       int
	}{
		{"50", "push rax", -8}, {"41 57", "push r15", -8}, {"54", "push rsp", -8}, {"66 50", "push ax", -2}, {"66 48 50", "push rax, 66 without effect", -8},
		{"6a 01", "push imm8", -8}, {"68 01 00 00 00", "push imm32", -8}, {"66 68 01 00", "push imm16", -2},
		{"ff 30", "push [rax]", -8}, {"ff f0", "push rax, the long way", -8}, {"0f a0", "push fs", -8}, {"0f a9", "pop gs", 8}, {"9c", "pushf", -8}, {"9d", "popf", 8},
		{"58", "pop rax", 8}, {"41 5c", "pop r12", 8}, {"5c", "pop rsp", unknown}, {"8f 00", "pop [rax]", 8}, {"8f c0", "pop rax, the long way", 8}, {"8f c4", "pop rsp, the long way", unknown},
		{"48 83 ec 18", "sub rsp, 24", -24}, {"48 83 c4 18", "add rsp, 24", 24}, {"48 83 c4 80", "add rsp, -128", -128}, {"48 81 ec 00 10 00 00", "sub rsp, 4096", -4096},
		{"83 c4 18", "add esp, 24", unknown}, {"49 83 c4 18", "add r12, 24", 0}, {"48 83 e4 f0", "and rsp, -16", unknown}, {"48 83 fc 10", "cmp rsp, 16", 0},
		{"48 83 04 24 01", "add [rsp], 1", 0}, {"48 01 c4", "add rsp, rax", unknown}, {"48 29 c4", "sub rsp, rax", unknown}, {"48 39 c4", "cmp rsp, rax", 0},
		{"48 8d 64 24 f8", "lea rsp, [rsp-8]", -8}, {"48 8d a4 24 00 01 00 00", "lea rsp, [rsp+256]", 256}, {"48 8d 65 d8", "lea rsp, [rbp-40]", unknown},
		{"48 8d 24 04", "lea rsp, [rsp+rax]", unknown}, {"8d 64 24 f8", "lea esp", unknown}, {"48 8d 44 24 08", "lea rax, [rsp+8]", 0},
		{"48 ff c4", "inc rsp", 1}, {"48 ff cc", "dec rsp", -1}, {"48 ff c0", "inc rax", 0},
		{"48 89 ec", "mov rsp, rbp", unknown}, {"48 89 e5", "mov rbp, rsp", 0}, {"c9", "leave", unknown}, {"c8 10 00 00", "enter", unknown}, {"48 94", "xchg rsp, rax", unknown},
		{"bc 00 00 00 00", "mov esp, 0", unknown}, {"48 8b 24 25 00 00 00 00", "mov rsp, [0]", unknown},
		{"c3", "ret", 8}, {"c2 10 00", "ret 16", 24}, {"f3 c3", "rep ret", 8}, {"e8 00 00 00 00", "call", 0}, {"ff d0", "call rax", 0}, {"ff 14 24", "call [rsp]", 0},
		{"cb", "lret", unknown}, {"48 cf", "iretq", unknown}, {"ff 18", "lcall", unknown}, {"e9 00 00 00 00", "jmp", 0}, {"ff e4", "jmp rsp", 0},
		{"0f 05", "syscall", 0}, {"90", "nop", 0}, {"0f 45 e0", "cmovne esp, eax", unknown}, {"88 e0", "mov al, ah", 0}, {"88 c4", "mov ah, al", 0}, {"40 88 c4", "mov spl, al", unknown},
	} {
		i := mustDecode(t, c.code)
		got, known := i.StackDelta()
		if !known {
			if got != 0 {
				t.Errorf("%s (%s): unknown and yet %d", c.name, c.code, got)
			}
			got = unknown
		}
		if got != c.want {
			t.Errorf("%s (%s): %d, want %d", c.name, c.code, got, c.want)
		}
	}
}

func TestGeneralRegisters(t *testing.T) {
	for _, c := range []struct{ code, name, read, written string }{
		{"48 01 c8", "add rax, rcx", "rax rcx", "rax"},
		{"4d 89 c8", "mov r8, r9", "r9", "r8"},
		{"89 c8", "mov eax, ecx zeroes the rest", "rcx", "rax"},
		{"66 89 c8", "mov ax, cx keeps the rest", "rax rcx", "rax"},
		{"88 e0", "mov al, ah", "rax", "rax"},
		{"88 f0", "mov al, dh", "rax rdx", "rax"},
		{"40 88 f0", "mov al, sil", "rax rsi", "rax"},
		{"8b 44 8a 10", "mov eax, [rdx+rcx*4+16]", "rcx rdx", "rax"},
		{"89 44 8a 10", "mov [rdx+rcx*4+16], eax", "rax rcx rdx", ""},
		{"48 8b 05 00 00 00 00", "mov rax, [rip]", "", "rax"},
		{"4c 8d 34 18", "lea r14, [rax+rbx]", "rax rbx", "r14"},
		{"48 39 d8", "cmp rax, rbx", "rax rbx", ""},
		{"48 93", "xchg rax, rbx", "rax rbx", "rax rbx"},
		{"49 90", "xchg rax, r8", "rax r8", "rax r8"},
		{"90", "nop", "", ""},
		{"41 b9 01 00 00 00", "mov r9d, 1", "", "r9"},
		{"b4 01", "mov ah, 1", "rax", "rax"},
		{"40 b4 01", "mov spl, 1", "rsp", "rsp"},
		{"41 57", "push r15", "rsp r15", "rsp"},
		{"5b", "pop rbx", "rsp", "rsp rbx"},
		{"c9", "leave", "rsp rbp", "rsp rbp"},
		{"48 98", "cdqe", "rax", "rax"},
		{"48 99", "cqo", "rax", "rdx"},
		{"48 f7 e1", "mul rcx", "rax rcx", "rax rdx"},
		{"48 f7 f1", "div rcx", "rax rcx rdx", "rax rdx"},
		{"f6 f1", "div cl", "rax rcx", "rax"},
		{"48 d3 e2", "shl rdx, cl", "rcx rdx", "rdx"},
		{"f3 48 a5", "rep movs", "rcx rsi rdi", "rcx rsi rdi"},
		{"48 ab", "stos", "rax rdi", "rdi"},
		{"f3 48 ab", "rep stos", "rax rcx rdi", "rcx rdi"},
		{"f2 ae", "repne scas", "rax rcx rdi", "rcx rdi"},
		{"48 0f 44 c1", "cmove rax, rcx", "rax rcx", "rax"},
		{"0f 94 c1", "sete cl", "rcx", "rcx"},
		{"0f b6 c4", "movzx eax, ah", "rax", "rax"},
		{"0f b6 cc", "movzx ecx, ah", "rax", "rcx"},
		{"f0 48 0f b1 0f", "cmpxchg [rdi], rcx", "rax rcx rdi", "rax"},
		{"f0 48 0f c7 0f", "cmpxchg16b [rdi]", "rax rbx rcx rdx rdi", "rax rdx"},
		{"0f a2", "cpuid", "rax rcx", "rax rbx rcx rdx"},
		{"0f 31", "rdtsc", "", "rax rdx"},
		{"0f 01 f9", "rdtscp", "", "rax rcx rdx"},
		{"0f 01 d0", "xgetbv", "rcx", "rax rdx"},
		{"0f 05", "syscall", "rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15", "rax rcx r11"},
		{"49 0f c9", "bswap r9", "r9", "r9"},
		{"66 48 0f 6e c1", "movq xmm0, rcx", "rcx", ""},
		{"66 48 0f 7e c1", "movq rcx, xmm0", "", "rcx"},
		{"f3 0f 7e c1", "movq xmm0, xmm1", "", ""},
		{"0f 28 c1", "movaps xmm0, xmm1", "", ""},
		{"66 0f d7 c1", "pmovmskb eax, xmm1", "", "rax"},
		{"f2 48 0f 2a c1", "cvtsi2sd xmm0, rcx", "rcx", ""},
		{"f2 48 0f 2c c1", "cvttsd2si rax, xmm1", "", "rax"},
		{"66 0f 3a 16 c1 01", "pextrd ecx, xmm0, 1", "", "rcx"},
		{"66 0f 3a 63 c1 0c", "pcmpistri", "", "rcx"},
		{"66 0f 3a 61 c1 0c", "pcmpestri", "rax rdx", "rcx"},
		{"c4 e2 f0 f2 c2", "andn rax, rcx, rdx", "rcx rdx", "rax"},
		{"c4 e2 f8 f3 c9", "blsr rax, rcx", "rcx", "rax"},
		{"c4 e2 f3 f6 c6", "mulx rax, rcx, rsi", "rdx rsi", "rax rcx"},
		{"c4 e2 f1 f7 c2", "shlx rax, rdx, rcx", "rcx rdx", "rax"},
		{"c5 f9 d7 c1", "vpmovmskb eax, xmm1", "", "rax"},
		{"c5 fb 92 c8", "kmovd k1, eax", "rax", ""},
		{"c5 fb 93 c1", "kmovd eax, k1", "", "rax"},
		{"c4 e2 69 90 04 a1", "vpgatherdd xmm0, [rcx+xmm4*4]", "rcx", ""},
		{"62 f2 7d 48 7c c0", "vpbroadcastd zmm0, eax", "rax", ""},
		{"62 f1 ff 08 78 c1", "vcvttsd2usi rax, xmm1", "", "rax"},
		{"e8 00 00 00 00", "call", "rsp", "rsp"},
		{"41 ff d3", "call r11", "rsp r11", "rsp"},
		{"41 ff e3", "jmp r11", "r11", ""},
		{"e3 00", "jrcxz", "rcx", ""},
		{"e2 00", "loop", "rcx", "rcx"},
		{"df e0", "fnstsw ax", "rax", "rax"},
		{"d7", "xlat", "rax rbx", "rax"},
		{"f3 48 0f ae c1", "rdfsbase rcx", "", "rcx"},
		{"f3 48 0f ae d1", "wrfsbase rcx", "rcx", ""},
		{"f3 48 0f b8 c1", "popcnt rax, rcx", "rcx", "rax"},
		{"48 0f bc c1", "bsf rax, rcx keeps rax if rcx is zero", "rax rcx", "rax"},
	} {
		i := mustDecode(t, c.code)
		if got, want := i.GPRRead(), registers(t, c.read); got != want {
			t.Errorf("%s (%s): reads %016b, want %016b", c.name, c.code, got, want)
		}
		if got, want := i.GPRWritten(), registers(t, c.written); got != want {
			t.Errorf("%s (%s): writes %016b, want %016b", c.name, c.code, got, want)
		}
		for r := RAX; r <= R15; r++ {
			if i.WritesReg(r) != (i.GPRWritten()&r.Mask() != 0) {
				t.Errorf("%s (%s): WritesReg(%v) and GPRWritten differ", c.name, c.code, r)
			}
		}
	}
}

func TestMayFault(t *testing.T) {
	for _, c := range []struct {
		code, name string
		want       bool
	}{
		{"8b 00", "mov eax, [rax]", true}, {"89 00", "mov [rax], eax", true}, {"48 3b 61 10", "cmp rsp, [rcx+16]", true},
		{"85 00", "test [rax], eax: a nil check", true}, {"8b 05 00 00 00 00", "mov eax, [rip]", true}, {"64 48 8b 04 25 28 00 00 00", "mov rax, fs:40", true},
		{"a1 00 00 00 00 00 00 00 00", "mov eax, [abs]", true}, {"0f 28 00", "movaps", true}, {"c5 f8 28 00", "vmovaps", true}, {"c4 e2 69 90 04 a1", "gather", true},
		{"a4", "movs", true}, {"f3 ab", "rep stos", true}, {"d7", "xlat", true}, {"f7 f1", "div", true}, {"f7 f9", "idiv", true}, {"0f b1 0f", "cmpxchg", true},
		{"0f 0b", "ud2", true}, {"cc", "int3", true}, {"f4", "hlt", true}, {"66 0f f7 c1", "maskmovdqu", true}, {"ff 20", "jmp [rax]", true}, {"ff 30", "push [rax]", true},
		{"8b 44 24 08", "mov eax, [rsp+8]", false}, {"89 44 24 f8", "mov [rsp-8], eax: red zone", false}, {"89 84 24 00 f0 ff ff", "mov [rsp-4096], eax: a probe", true},
		{"8b 04 0c", "mov eax, [rsp+rcx]", true}, {"8b 45 f8", "mov eax, [rbp-8]: rbp may be anything", true}, {"64 8b 04 24", "mov eax, fs:[rsp]", true},
		{"48 8d 00", "lea", false}, {"0f 1f 00", "nop [rax]", false}, {"0f 18 08", "prefetch", false}, {"0f 0d 08", "prefetchw", false},
		{"50", "push", false}, {"58", "pop", false}, {"c9", "leave", false}, {"c3", "ret", false}, {"e8 00 00 00 00", "call", false}, {"01 c8", "add", false},
		{"f7 e1", "mul", false}, {"0f 05", "syscall", false}, {"0f 31", "rdtsc", false}, {"0f 01 d0", "xgetbv", false}, {"0f 01 d8", "vmrun", true}, {"fa", "cli", true},
	} {
		in := mustDecode(t, c.code)
		if got := in.MayFault(); got != c.want {
			t.Errorf("%s (%s): %v", c.name, c.code, got)
		}
	}
}

func TestFlow(t *testing.T) {
	for _, c := range []struct {
		code                    string
		ends, nop, padding, ibt bool
	}{
		{"eb 00", true, false, false, false},
		{"e9 00 00 00 00", true, false, false, false},
		{"ff e0", true, false, false, false},
		{"c3", true, false, false, false},
		{"cb", true, false, false, false},
		{"ff 28", true, false, false, false},
		{"ff 18", false, false, false, false}, // lcall comes back
		{"0f 07", true, false, false, false},
		{"0f 0b", true, false, false, false},
		{"f4", true, false, false, false},
		{"74 00", false, false, false, false},
		{"e2 00", false, false, false, false},
		{"e8 00 00 00 00", false, false, false, false},
		{"0f 05", false, false, false, false},
		{"cc", false, false, true, false},
		{"f1", false, false, false, false},
		{"90", false, true, true, false},
		{"66 90", false, true, true, false},
		{"f3 90", false, false, false, false}, // pause
		{"41 90", false, false, false, false}, // xchg r8, rax
		{"0f 1f 00", false, true, true, false},
		{"66 2e 0f 1f 84 00 00 00 00 00", false, true, true, false},
		{"0f 1f c0", false, true, true, false},
		{"48 8d 76 00", false, true, true, false},
		{"48 8d 74 26 00", false, true, true, false},
		{"8d 76 00", false, false, false, false}, // zeroes the upper half
		{"48 8d 76 01", false, false, false, false},
		{"48 89 f6", false, true, true, false},
		{"89 f6", false, false, false, false},
		{"48 89 fe", false, false, false, false},
		{"f3 0f 1e fa", false, false, false, true},
		{"0f 1e fa", false, false, false, false},
		{"f3 0f 1e fb", false, false, false, false}, // endbr32
	} {
		i := mustDecode(t, c.code)
		if i.Ends() != c.ends || i.IsNop() != c.nop || i.IsPadding() != c.padding || i.IsEndbr64() != c.ibt {
			t.Errorf("%s: ends %v, nop %v, padding %v, endbr64 %v", c.code, i.Ends(), i.IsNop(), i.IsPadding(), i.IsEndbr64())
		}
	}
}

func TestTargets(t *testing.T) {
	for _, c := range []struct {
		code   string
		pc     uint64
		target uint64
		direct bool
		mem    uint64
		rip    bool
	}{
		{"eb fe", 0x401000, 0x401000, true, 0, false},
		{"e8 fb ff ff ff", 0x401000, 0x401000, true, 0, false},
		{"0f 84 00 00 00 80", 0x1_0000_0000, 0x8000_0006, true, 0, false},
		{"eb 00", 0xFFFF_FFFF_FFFF_FFFE, 0, true, 0, false},
		{"48 8b 05 10 00 00 00", 0x401000, 0, false, 0x401017, true},
		{"c7 05 10 00 00 00 01 00 00 00", 0x401000, 0, false, 0x40101A, true}, // counted from behind the immediate
		{"ff 25 f6 ff ff ff", 0x401000, 0, false, 0x400FFC, true},
		{"67 8b 05 10 00 00 00", 0x1_0040_1000, 0, false, 0x40_1017, true},
		{"8b 04 25 10 00 00 00", 0x401000, 0, false, 0, false},
		{"ff e0", 0x401000, 0, false, 0, false},
		{"c3", 0x401000, 0, false, 0, false},
	} {
		i := mustDecode(t, c.code)
		if target, ok := i.Target(c.pc); ok != c.direct || target != c.target {
			t.Errorf("%s: target %#x, %v", c.code, target, ok)
		}
		if mem, ok := i.MemTarget(c.pc); ok != c.rip || mem != c.mem {
			t.Errorf("%s: memory at %#x, %v", c.code, mem, ok)
		}
	}
}
