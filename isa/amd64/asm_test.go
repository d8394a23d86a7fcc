package amd64

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// asmBase is where the code of these tests stands.
const asmBase = 0x5555_0000_1000

// asmCase is one instruction, and how objdump is to print it.
type asmCase struct {
	emit func(a *Asm)
	want string
	mem  *Mem // the memory operand, if there is one
}

var regNames32 = [16]string{
	"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi",
	"r8d", "r9d", "r10d", "r11d", "r12d", "r13d", "r14d", "r15d",
}

func allRegs() []Reg {
	var regs []Reg
	for r := RAX; r <= R15; r++ {
		regs = append(regs, r)
	}
	return regs
}

// operandForms are memory operands with every base, every index with its scales, and displacements on both sides of what 8 bits hold.
func operandForms() []Mem {
	forms := []Mem{AtAddr(asmBase), AtAddr(asmBase + 0x7000_0000), AtAddr(asmBase - 0x7000_0000), AtFS(0), AtFS(0x2D0), AtFS(-8)}
	disps := []int32{0, 1, 127, 128, -128, -129, 1<<31 - 1, -1 << 31}
	for _, base := range allRegs() {
		for _, d := range disps {
			forms = append(forms, At(base, d))
		}
		for _, index := range allRegs() {
			if index == RSP {
				continue
			}
			for k, scale := range []uint8{1, 2, 4, 8} {
				forms = append(forms, AtIndex(base, index, scale, disps[(int(base)+int(index)+k)%len(disps)]))
			}
		}
	}
	return forms
}

// fewForms are operands of each kind, for the instructions that need not be tried with all.
var fewForms = []Mem{
	At(RAX, 0), At(RSP, -24), At(RBP, 0), At(R12, 0), At(R13, 0), At(R15, 0x12345), AtIndex(RDX, RAX, 8, 8),
	AtIndex(R9, R10, 1, 0x200000), AtIndex(R13, R12, 4, 0), AtIndex(RBP, RDX, 2, 0), AtAddr(asmBase + 0x1000), AtAddr(asmBase - 0x1000), AtFS(0x2D0),
}

// memText is an operand in objdump's Intel syntax. RIP-relative ones are compared by their address instead.
func memText(m *Mem) string {
	number := func(d int32, plus bool) string {
		switch {
		case d < 0:
			return fmt.Sprintf("-%#x", -int64(d))
		case plus:
			return fmt.Sprintf("+%#x", d)
		}
		return fmt.Sprintf("%#x", d)
	}
	switch {
	case m.FS:
		return fmt.Sprintf("fs:%#x", uint64(int64(m.Disp)))
	case m.RIP:
		return "[rip]"
	}
	s := m.Base.String()
	if m.Scale != 0 {
		s += "+" + m.Index.String() + "*" + strconv.Itoa(int(m.Scale))
	}
	if m.Disp != 0 || m.Base&7 == RBP {
		s += number(m.Disp, true)
	}
	return "[" + s + "]"
}

// memInstructions are the methods with a memory operand; %m stands for it, %r and %e for the register.
var memInstructions = []struct {
	emit func(a *Asm, r Reg, m Mem)
	want string
}{
	{func(a *Asm, r Reg, m Mem) { a.Load64(r, m) }, "mov %r,QWORD PTR %m"},
	{func(a *Asm, r Reg, m Mem) { a.Load32(r, m) }, "mov %e,DWORD PTR %m"},
	{func(a *Asm, r Reg, m Mem) { a.Store64(m, r) }, "mov QWORD PTR %m,%r"},
	{func(a *Asm, r Reg, m Mem) { a.Store32(m, r) }, "mov DWORD PTR %m,%e"},
	{func(a *Asm, r Reg, m Mem) { a.Store8Imm(m, 0x80) }, "mov BYTE PTR %m,0x80"},
	{func(a *Asm, r Reg, m Mem) { a.Store32Imm(m, 0x89ABCDEF) }, "mov DWORD PTR %m,0x89abcdef"},
	{func(a *Asm, r Reg, m Mem) { a.Store64Imm(m, -2) }, "mov QWORD PTR %m,0xfffffffffffffffe"},
	{func(a *Asm, r Reg, m Mem) { a.Xadd64(m, r) }, "xadd QWORD PTR %m,%r"},
	{func(a *Asm, r Reg, m Mem) { a.LockXadd64(m, r) }, "lock xadd QWORD PTR %m,%r"},
	{func(a *Asm, r Reg, m Mem) { a.LockXadd32(m, r) }, "lock xadd DWORD PTR %m,%e"},
	{func(a *Asm, r Reg, m Mem) { a.BtMem(m, r) }, "bt QWORD PTR %m,%r"},
	{func(a *Asm, r Reg, m Mem) { a.LockBtsMem(m, r) }, "lock bts QWORD PTR %m,%r"},
	{func(a *Asm, r Reg, m Mem) { a.LockCmpxchg64(m, r) }, "lock cmpxchg QWORD PTR %m,%r"},
	{func(a *Asm, r Reg, m Mem) { a.Cmpxchg64(m, r) }, "cmpxchg QWORD PTR %m,%r"},
	{func(a *Asm, r Reg, m Mem) { a.LockCmpxchg32(m, r) }, "lock cmpxchg DWORD PTR %m,%e"},
	{func(a *Asm, r Reg, m Mem) { a.CmpMem32(r, m) }, "cmp %e,DWORD PTR %m"},
	{func(a *Asm, r Reg, m Mem) { a.DivMem(m) }, "div QWORD PTR %m"},
	{func(a *Asm, r Reg, m Mem) { a.AddMem(r, m) }, "add %r,QWORD PTR %m"},
	{func(a *Asm, r Reg, m Mem) { a.SubMem(r, m) }, "sub %r,QWORD PTR %m"},
	{func(a *Asm, r Reg, m Mem) { a.AddToMem(m, r) }, "add QWORD PTR %m,%r"},
	{func(a *Asm, r Reg, m Mem) { a.IncMem(m) }, "inc QWORD PTR %m"},
	{func(a *Asm, r Reg, m Mem) { a.CmpMem(r, m) }, "cmp %r,QWORD PTR %m"},
	{func(a *Asm, r Reg, m Mem) { a.CmpMem32Imm(m, 0x89ABCDEF) }, "cmp DWORD PTR %m,0x89abcdef"},
	{func(a *Asm, r Reg, m Mem) { a.SubMem32(r, m) }, "sub %e,DWORD PTR %m"},
	{func(a *Asm, r Reg, m Mem) { a.SbbMem32(r, m) }, "sbb %e,DWORD PTR %m"},
	{func(a *Asm, r Reg, m Mem) { a.CmpMem32Imm8(m, -1) }, "cmp DWORD PTR %m,0xffffffff"},
	{func(a *Asm, r Reg, m Mem) { a.CmpMem64Imm8(m, 5) }, "cmp QWORD PTR %m,0x5"},
	{func(a *Asm, r Reg, m Mem) { a.TestMem32Imm(m, 1<<30) }, "test DWORD PTR %m,0x40000000"},
	{func(a *Asm, r Reg, m Mem) { a.Load16(r, m) }, "movzx %e,WORD PTR %m"},
	{func(a *Asm, r Reg, m Mem) { a.Load8(r, m) }, "movzx %e,BYTE PTR %m"},
}

// regInstructions are the methods with two registers or one; %r and %e stand for the first, %s and %t for the second.
var regInstructions = []struct {
	emit func(a *Asm, r, s Reg)
	want string
}{
	{func(a *Asm, r, s Reg) { a.Mov(r, s) }, "mov %r,%s"},
	{func(a *Asm, r, s Reg) { a.Mov32(r, s) }, "mov %e,%t"},
	{func(a *Asm, r, s Reg) { a.Add(r, s) }, "add %r,%s"},
	{func(a *Asm, r, s Reg) { a.Sub(r, s) }, "sub %r,%s"},
	{func(a *Asm, r, s Reg) { a.Sub32(r, s) }, "sub %e,%t"},
	{func(a *Asm, r, s Reg) { a.Div32(r) }, "div %e"},
	{func(a *Asm, r, s Reg) { a.Or(r, s) }, "or %r,%s"},
	{func(a *Asm, r, s Reg) { a.Cmp(r, s) }, "cmp %r,%s"},
	{func(a *Asm, r, s Reg) { a.Cmp32(r, s) }, "cmp %e,%t"},
	{func(a *Asm, r, s Reg) { a.CmpImm32(r, 0x89ABCDEF) }, "cmp %e,0x89abcdef"},
	{func(a *Asm, r, s Reg) { a.Test(r, s) }, "test %r,%s"},
	{func(a *Asm, r, s Reg) { a.Test32(r, s) }, "test %e,%t"},
	{func(a *Asm, r, s Reg) { a.MovImm32(r, 0xFEDCBA98) }, "mov %e,0xfedcba98"},
	{func(a *Asm, r, s Reg) { a.MovImm64(r, 0xFEDCBA9876543210) }, "movabs %r,0xfedcba9876543210"},
	{func(a *Asm, r, s Reg) { a.And32Imm(r, 0xFFFF) }, "and %e,0xffff"},
	{func(a *Asm, r, s Reg) { a.ShlImm(r, 32) }, "shl %r,0x20"},
	{func(a *Asm, r, s Reg) { a.ShrImm(r, 48) }, "shr %r,0x30"},
	{func(a *Asm, r, s Reg) { a.SarImm(r, 48) }, "sar %r,0x30"},
	{func(a *Asm, r, s Reg) { a.ShlCL(r) }, "shl %r,cl"},
	{func(a *Asm, r, s Reg) { a.ShrCL(r) }, "shr %r,cl"},
	{func(a *Asm, r, s Reg) { a.SarCL(r) }, "sar %r,cl"},
	{func(a *Asm, r, s Reg) { a.Shl32Imm(r, 3) }, "shl %e,0x3"},
	{func(a *Asm, r, s Reg) { a.Push(r) }, "push %r"},
	{func(a *Asm, r, s Reg) { a.Pop(r) }, "pop %r"},
	{func(a *Asm, r, s Reg) { a.JmpReg(r) }, "jmp %r"},
	{func(a *Asm, r, s Reg) { a.Xchg(r, s) }, "xchg %s,%r"},
	{func(a *Asm, r, s Reg) { a.CallReg(r) }, "call %r"},
	{func(a *Asm, r, s Reg) { a.CmpImm64(r, -5) }, "cmp %r,0xfffffffffffffffb"},
	{func(a *Asm, r, s Reg) { a.Movsx32(r) }, "movsxd %r,%e"},
	{func(a *Asm, r, s Reg) { a.MovX(r, uint8(s)) }, "movq %r,%x"},
}

// bareInstructions have no operand to choose.
var bareInstructions = []struct {
	emit func(a *Asm)
	want string
}{
	{(*Asm).Ret, "ret"},
	{(*Asm).Rdtsc, "rdtsc"},
	{(*Asm).Lahf, "lahf"},
	{(*Asm).Sahf, "sahf"},
	{(*Asm).SetOAL, "seto al"},
	{(*Asm).Syscall, "syscall"},
	{(*Asm).Pause, "pause"},
	{(*Asm).Cld, "cld"},
	{(*Asm).Pushf, "pushf"},
	{(*Asm).RepStos64, "rep stos QWORD PTR es:[rdi],rax"},
	{func(a *Asm) { a.Movsx8(RDX) }, "movsx rdx,dl"},
	{func(a *Asm) { a.CmpImm8(RCX, 0xFE) }, "cmp cl,0xfe"},
	{func(a *Asm) { a.CmpImm8(RDI, 0x7E) }, "cmp dil,0x7e"},
	{func(a *Asm) { a.CmpImm8(R9, 1) }, "cmp r9b,0x1"},
	{func(a *Asm) { a.CmpImm16(RSI, 0xFFFE) }, "cmp si,0xfffe"},
	{func(a *Asm) { a.CmpImm16(R8, 0x1234) }, "cmp r8w,0x1234"},
	{func(a *Asm) { a.Movzx8(RBX) }, "movzx ebx,bl"},
	{func(a *Asm) { a.Movsx16(R9) }, "movsx r9,r9w"},
	{func(a *Asm) { a.Movzx16(RAX) }, "movzx eax,ax"},
	{func(a *Asm) { a.AddALImm(0x7F) }, "add al,0x7f"},
	{func(a *Asm) { a.TestALImm(RAX, 1) }, "test al,0x1"},
	{func(a *Asm) { a.TestALImm(RCX, 2) }, "test cl,0x2"},
	{func(a *Asm) { a.TestALImm(RDX, 4) }, "test dl,0x4"},
	{func(a *Asm) { a.TestALImm(RBX, 0x80) }, "test bl,0x80"},
	{func(a *Asm) { a.Align(1) }, ""},
	{func(a *Asm) { a.JmpTo(asmBase) }, "jmp 0x555500001000"},
	{func(a *Asm) { a.JmpTo(asmBase + 0x7FFF_0000) }, "jmp 0x55557fff1000"},
	{func(a *Asm) { a.CallTo(asmBase - 0x7FFF_0000) }, "call 0x555480011000"},
}

func asmCases() []asmCase {
	var cases []asmCase
	add := func(mem *Mem, want string, r, s Reg, emit func(a *Asm)) {
		if mem != nil {
			want = strings.ReplaceAll(want, "%m", memText(mem))
		}
		want = strings.NewReplacer("%r", r.String(), "%e", regNames32[r], "%s", s.String(), "%t", regNames32[s], "%x", fmt.Sprintf("xmm%d", s), "%y", fmt.Sprintf("xmm%d", r)).Replace(want)
		cases = append(cases, asmCase{emit, want, mem})
	}
	for i, m := range operandForms() {
		r := Reg(i % 16)
		add(&m, "mov %r,QWORD PTR %m", r, 0, func(a *Asm) { a.Load64(r, m) })
		add(&m, "mov DWORD PTR %m,%e", r, 0, func(a *Asm) { a.Store32(m, r) })
		if !m.FS { // lea knows no segments
			add(&m, "lea %r,%m", r, 0, func(a *Asm) { a.Lea(r, m) })
		}
	}
	for _, in := range memInstructions {
		for i, m := range fewForms {
			for _, r := range []Reg{Reg(i), Reg(15 - i)} {
				add(&m, in.want, r, 0, func(a *Asm) { in.emit(a, r, m) })
			}
		}
	}
	for i, m := range fewForms {
		if !m.FS {
			add(&m, "movq QWORD PTR %m,%y", Reg(15-i), 0, func(a *Asm) { a.StoreX64(m, uint8(15-i)) })
			add(&m, "movd DWORD PTR %m,%y", Reg(i), 0, func(a *Asm) { a.StoreX32(m, uint8(i)) })
			add(&m, "mov WORD PTR %m,ax", Reg(i), 0, func(a *Asm) { a.Store16(m, RAX) })
		}
	}
	for _, in := range regInstructions {
		for _, r := range allRegs() {
			for _, s := range allRegs() {
				add(nil, in.want, r, s, func(a *Asm) { in.emit(a, r, s) })
			}
		}
	}
	for _, in := range bareInstructions {
		cases = append(cases, asmCase{emit: in.emit, want: in.want})
	}
	for _, c := range []struct {
		cond Cond
		want string
	}{
		{CondO, "jo"}, {CondB, "jb"}, {CondAE, "jae"}, {CondE, "je"}, {CondNE, "jne"}, {CondBE, "jbe"}, {CondA, "ja"}, {CondS, "js"}, {CondNS, "jns"}, {CondGE, "jge"}, {CondLE, "jle"}, {CondL, "jl"}, {CondG, "jg"},
	} {
		cases = append(cases, asmCase{emit: func(a *Asm) { a.JccTo(c.cond, asmBase) }, want: c.want + " 0x555500001000"})
	}
	return cases
}

func TestAsmEncodesWhatItsOwnDecoderReads(t *testing.T) {
	for _, c := range asmCases() {
		a := NewAsm(asmBase, nil)
		c.emit(a)
		code, err := a.Finish()
		if err != nil {
			t.Errorf("%s: %v", c.want, err)
			continue
		}
		if c.want == "" {
			if len(code) != 0 {
				t.Errorf("% x where nothing was expected", code)
			}
			continue
		}
		in, err := Decode(code)
		if err != nil || int(in.Len) != len(code) {
			t.Errorf("%s: % x decodes to %d bytes, error %v", c.want, code, in.Len, err)
			continue
		}
		if in.HasMem != (c.mem != nil) {
			t.Errorf("%s: % x: memory operand %v", c.want, code, in.HasMem)
		} else if c.mem != nil {
			checkOperand(t, c, in)
		}
	}
}

// checkOperand compares the decoded operand with the one encoded.
func checkOperand(t *testing.T, c asmCase, in Inst) {
	t.Helper()
	m := c.mem
	base, index, scale, disp := int8(m.Base), NoReg, uint8(0), m.Disp
	if m.Scale != 0 {
		index, scale = int8(m.Index), m.Scale
	}
	switch {
	case m.RIP:
		if addr, ok := in.MemTarget(asmBase); !ok || addr != m.Addr {
			t.Errorf("%s: operand at %#x, want %#x", c.want, addr, m.Addr)
		}
		return
	case m.FS:
		base = NoReg
		if in.Prefixes&SegFS == 0 {
			t.Errorf("%s: no FS prefix", c.want)
		}
	}
	if in.Base != base || in.Index != index || in.Scale != scale || in.Disp != disp {
		t.Errorf("%s: decoded as base %d, index %d*%d, displacement %#x", c.want, in.Base, in.Index, in.Scale, in.Disp)
	}
}

func TestAsmAgreesWithObjdump(t *testing.T) {
	cases := asmCases()
	a := NewAsm(asmBase, nil)
	var starts []uint64
	for _, c := range cases {
		starts = append(starts, a.PC())
		c.emit(a)
	}
	code, err := a.Finish()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "code")
	if err := os.WriteFile(file, code, 0o600); err != nil {
		t.Fatal(err)
	}
	path := realtest.Tool(t, realtest.Objdump)
	out, err := exec.Command(path, "-D", "-w", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", "--insn-width=16",
		fmt.Sprintf("--adjust-vma=%#x", uint64(asmBase)), file).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	k := 0
	for lines.Scan() {
		addr, text, ok := intelLine(lines.Text())
		if !ok {
			continue
		}
		for k < len(cases) && cases[k].want == "" {
			k++
		}
		if k == len(cases) {
			t.Fatalf("objdump sees more: %s", lines.Text())
		}
		if addr != starts[k] {
			t.Fatalf("%q begins at %#x, for objdump at %#x: %s", cases[k].want, starts[k], addr, text)
		}
		if want := cases[k].withAddress(); text != want {
			t.Errorf("objdump reads %q, want %q", text, want)
		}
		k++
	}
	if k < len(cases) {
		t.Errorf("objdump saw %d of %d instructions", k, len(cases))
	}
}

// withAddress is the text with the address that a RIP-relative operand names, as intelLine gives it.
func (c *asmCase) withAddress() string {
	if c.mem != nil && c.mem.RIP {
		return fmt.Sprintf("%s # %#x", c.want, c.mem.Addr)
	}
	return c.want
}

// intelLine reads an instruction off a line of objdump's listing; the displacement from rip is left out.
func intelLine(line string) (addr uint64, text string, ok bool) {
	at, rest, ok := strings.Cut(line, ":\t")
	if !ok {
		return 0, "", false
	}
	addr, err := strconv.ParseUint(strings.TrimSpace(at), 16, 64)
	if err != nil {
		return 0, "", false
	}
	_, text, _ = strings.Cut(rest, "\t")
	text = strings.Join(strings.Fields(text), " ")
	if from := strings.Index(text, "[rip"); from >= 0 {
		to := strings.Index(text, "]")
		text = text[:from] + "[rip]" + text[to+1:]
	}
	return addr, text, true
}

func TestAsmLabelsLeadWhereTheyArePlaced(t *testing.T) {
	a := NewAsm(asmBase, nil)
	back, ahead := a.NewLabel(), a.NewLabel()
	a.Place(back)
	a.Raw(0x90)
	type branch struct{ at, to uint64 }
	var want []branch
	for _, l := range []Label{back, ahead} {
		for _, emit := range []func(){func() { a.Jmp(l) }, func() { a.Jcc(CondNE, l) }, func() { a.Call(l) }} {
			want = append(want, branch{a.PC(), uint64(l)})
			emit()
		}
	}
	a.Align(16)
	places := map[uint64]uint64{uint64(back): asmBase, uint64(ahead): a.PC()}
	a.Place(ahead)
	a.Ret()
	code, err := a.Finish()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range want {
		in, err := Decode(code[b.at-asmBase:])
		if err != nil {
			t.Fatal(err)
		}
		if to, ok := in.Target(b.at); !ok || to != places[b.to] {
			t.Errorf("branch at %#x leads to %#x, want %#x", b.at, to, places[b.to])
		}
	}
	if again, err := a.Finish(); err != nil || !bytes.Equal(again, code) {
		t.Errorf("a second Finish gives something else (error %v)", err)
	}
	for _, b := range code[want[len(want)-1].at-asmBase+5 : places[uint64(ahead)]-asmBase] {
		if b != 0xCC {
			t.Errorf("filled with %#x, want int3", b)
		}
	}
}

func TestAsmRefusesWhatHasNoEncoding(t *testing.T) {
	const far = 1 << 31
	for _, c := range []struct {
		name  string
		emit  func(a *Asm)
		reach bool // the error is ErrAsmRange
		ok    bool
	}{
		{"the last address forward", func(a *Asm) { a.JmpTo(asmBase + 5 + far - 1) }, true, true},
		{"one beyond", func(a *Asm) { a.JmpTo(asmBase + 5 + far) }, true, false},
		{"the last address backward", func(a *Asm) { a.CallTo(asmBase + 5 - far) }, true, true},
		{"one before", func(a *Asm) { a.CallTo(asmBase + 5 - far - 1) }, true, false},
		{"jcc too far", func(a *Asm) { a.JccTo(CondE, asmBase+6+far) }, true, false},
		{"operand as far as can be", func(a *Asm) { a.Load64(RAX, AtAddr(asmBase+7+far-1)) }, true, true},
		{"operand too far", func(a *Asm) { a.Load64(RAX, AtAddr(asmBase+7+far)) }, true, false},
		{"the immediate counts", func(a *Asm) { a.Store32Imm(AtAddr(asmBase+10+far-1), 1) }, true, true},
		{"operand too far with an immediate", func(a *Asm) { a.Store32Imm(AtAddr(asmBase+10+far), 1) }, true, false},
		{"an address on the other side of the world", func(a *Asm) { a.JmpTo(0xFFFF_FFFF_FF60_0000) }, true, false},
		{"a label that is nowhere", func(a *Asm) { a.Jmp(a.NewLabel()) }, false, false},
		{"rsp as an index", func(a *Asm) { a.Load64(RAX, AtIndex(RAX, RSP, 1, 0)) }, false, false},
		{"r12 as an index", func(a *Asm) { a.Load64(RAX, AtIndex(RAX, R12, 1, 0)) }, false, true},
		{"a scale of 3", func(a *Asm) { a.Load64(RAX, AtIndex(RAX, RCX, 3, 0)) }, false, false},
		{"a scale of 255", func(a *Asm) { a.Load64(RAX, AtIndex(RAX, RCX, 255, 0)) }, false, false},
		{"the low byte of rsi", func(a *Asm) { a.TestALImm(RSI, 1) }, false, false},
	} {
		a := NewAsm(asmBase, nil)
		c.emit(a)
		_, err := a.Finish()
		switch {
		case (err == nil) != c.ok:
			t.Errorf("%s: error %v", c.name, err)
		case err != nil && errors.Is(err, ErrAsmRange) != c.reach:
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// Code that another Asm has made in the buffer is taken over as it is.
func TestCodeIsMadeInPiecesOfABuffer(t *testing.T) {
	const base = 0x1000
	a := NewAsm(base, make([]byte, 0, 64))
	a.Raw(1, 2)
	b := NewAsm(base+8, a.Space(8, 12))
	b.Raw(3, 4)
	if b.Base() != base+8 || b.PC() != base+10 {
		t.Errorf("from %#x to %#x", b.Base(), b.PC())
	}
	clear(a.Extend(6))
	if added := a.Extend(2); !bytes.Equal(added, []byte{3, 4}) {
		t.Errorf("extended by %v", added)
	}
	b.Raw(5, 6, 7) // more than it had room for
	a.Extend(100)[99] = 8
	code, err := a.Finish()
	if err != nil || len(code) != 110 || code[109] != 8 || !bytes.Equal(a.Since(0)[:10], []byte{1, 2, 0, 0, 0, 0, 0, 0, 3, 4}) {
		t.Errorf("%v, %v", code, err)
	}
}
