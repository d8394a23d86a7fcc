package arm64

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/isa"
)

// asmBase is where the code of these tests stands.
const asmBase = 0x5555_0000_1000

// asmCase is one instruction, and how an assembler is told of it.
type asmCase struct {
	emit func(a *Asm)
	text string
}

// forms makes one instruction of each form, with operands by chance.
type forms struct {
	*rand.Rand
	list []asmCase
}

func (f *forms) add(emit func(a *Asm), format string, args ...any) {
	f.list = append(f.list, asmCase{emit, fmt.Sprintf(format, args...)})
}

func (f *forms) reg() isa.Reg { return isa.Reg(f.IntN(31)) }

// any is a register, 31 included.
func (f *forms) any() isa.Reg { return isa.Reg(f.IntN(32)) }

func named(prefix, at31 string) func(r isa.Reg) string {
	return func(r isa.Reg) string {
		if r == 31 {
			return at31
		}
		return prefix + strconv.Itoa(int(r))
	}
}

var (
	x   = named("x", "xzr")
	w   = named("w", "wzr")
	xsp = named("x", "sp")
	wsp = named("w", "wsp")
	q   = named("q", "q31")
	d   = named("d", "d31")
)

var condNames = [14]string{"eq", "ne", "hs", "lo", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le"}

// mask is a number that logical instructions can have.
func (f *forms) mask(size int) uint64 {
	element := 2 << f.IntN(bits.Len(uint(size))-1)
	ones := 1 + f.IntN(element-1)
	v := uint64(1)<<ones - 1
	turn := f.IntN(element)
	v = (v>>turn | v<<(element-turn)) & (^uint64(0) >> (64 - element))
	for ; element < size; element *= 2 {
		v |= v << element
	}
	return v
}

func (f *forms) arith() {
	a, b, c, e := f.any(), f.any(), f.any(), f.any()
	v, shift := uint16(f.Uint32()), uint8(16*f.IntN(4))
	f.add(func(m *Asm) { m.Movz(a, v, shift) }, "movz %s, #%d, lsl #%d", x(a), v, shift)
	f.add(func(m *Asm) { m.Movn(a, v, shift) }, "movn %s, #%d, lsl #%d", x(a), v, shift)
	f.add(func(m *Asm) { m.Movk(a, v, shift) }, "movk %s, #%d, lsl #%d", x(a), v, shift)
	f.add(func(m *Asm) { m.MovzW(a, v, shift&16) }, "movz %s, #%d, lsl #%d", w(a), v, shift&16)
	f.add(func(m *Asm) { m.MovkW(a, v, shift&16) }, "movk %s, #%d, lsl #%d", w(a), v, shift&16)
	f.add(func(m *Asm) { m.Mov(a, b) }, "mov %s, %s", x(a), x(b))
	f.add(func(m *Asm) { m.MovW(a, b) }, "mov %s, %s", w(a), w(b))
	f.add(func(m *Asm) { m.MovSP(a, b) }, "add %s, %s, #0", xsp(a), xsp(b))

	imm := int64(f.IntN(1 << 12))
	if f.IntN(3) == 0 {
		imm <<= 12
	}
	f.add(func(m *Asm) { m.AddImm(a, b, imm) }, "add %s, %s, #%d", xsp(a), xsp(b), imm)
	f.add(func(m *Asm) { m.AddImm(a, b, -imm-1&^0xFFF) }, "sub %s, %s, #%d", xsp(a), xsp(b), -(-imm - 1&^0xFFF))
	f.add(func(m *Asm) { m.AddImmW(a, b, imm) }, "add %s, %s, #%d", wsp(a), wsp(b), imm)
	f.add(func(m *Asm) { m.SubImm(a, b, imm) }, "sub %s, %s, #%d", xsp(a), xsp(b), imm)
	f.add(func(m *Asm) { m.SubImmW(a, b, imm) }, "sub %s, %s, #%d", wsp(a), wsp(b), imm)
	f.add(func(m *Asm) { m.SubsImm(a, b, imm) }, "subs %s, %s, #%d", x(a), xsp(b), imm)
	f.add(func(m *Asm) { m.SubsImmW(a, b, imm) }, "subs %s, %s, #%d", w(a), wsp(b), imm)
	f.add(func(m *Asm) { m.CmpImm(b, imm) }, "cmp %s, #%d", xsp(b), imm)
	f.add(func(m *Asm) { m.CmpImmW(b, imm) }, "cmp %s, #%d", wsp(b), imm)

	by := uint8(f.IntN(64))
	three := func(emit func(m *Asm, a, b, c isa.Reg), name string, n func(isa.Reg) string) {
		f.add(func(m *Asm) { emit(m, a, b, c) }, "%s %s, %s, %s", name, n(a), n(b), n(c))
	}
	three((*Asm).Add, "add", x)
	three((*Asm).AddW, "add", w)
	three((*Asm).Sub, "sub", x)
	three((*Asm).SubW, "sub", w)
	three((*Asm).Subs, "subs", x)
	three((*Asm).SubsW, "subs", w)
	three((*Asm).And, "and", x)
	three((*Asm).Orr, "orr", x)
	three((*Asm).OrrW, "orr", w)
	three((*Asm).Eor, "eor", x)
	three((*Asm).EorW, "eor", w)
	three((*Asm).Bic, "bic", x)
	three((*Asm).Lsl, "lsl", x)
	three((*Asm).Lsr, "lsr", x)
	three((*Asm).Asr, "asr", x)
	three((*Asm).Udiv, "udiv", x)
	f.add(func(m *Asm) { m.AddLSL(a, b, c, by) }, "add %s, %s, %s, lsl #%d", x(a), x(b), x(c), by)
	f.add(func(m *Asm) { m.OrrLSL(a, b, c, by) }, "orr %s, %s, %s, lsl #%d", x(a), x(b), x(c), by)
	f.add(func(m *Asm) { m.Cmp(b, c) }, "cmp %s, %s", x(b), x(c))
	f.add(func(m *Asm) { m.CmpW(b, c) }, "cmp %s, %s", w(b), w(c))
	f.add(func(m *Asm) { m.Madd(a, b, c, e) }, "madd %s, %s, %s, %s", x(a), x(b), x(c), x(e))
	f.add(func(m *Asm) { m.Msub(a, b, c, e) }, "msub %s, %s, %s, %s", x(a), x(b), x(c), x(e))

	small := uint8(f.IntN(5))
	f.add(func(m *Asm) { m.AddExt(a, b, c, UXTW, small) }, "add %s, %s, %s, uxtw #%d", xsp(a), xsp(b), w(c), small)
	f.add(func(m *Asm) { m.AddExt(a, b, c, LSL, small) }, "add %s, %s, %s, uxtx #%d", xsp(a), xsp(b), x(c), small)
	f.add(func(m *Asm) { m.SubExt(a, b, c, SXTW, small) }, "sub %s, %s, %s, sxtw #%d", xsp(a), xsp(b), w(c), small)
	f.add(func(m *Asm) { m.CmpExt(b, c, LSL) }, "cmp %s, %s, uxtx", xsp(b), x(c))

	long, short := f.mask(64), uint32(f.mask(32))
	f.add(func(m *Asm) { m.AndImm(a, b, long) }, "and %s, %s, #%#x", xsp(a), x(b), long)
	f.add(func(m *Asm) { m.AndImmW(a, b, short) }, "and %s, %s, #%#x", wsp(a), w(b), short)
	f.add(func(m *Asm) { m.OrrImm(a, b, long) }, "orr %s, %s, #%#x", xsp(a), x(b), long)
	f.add(func(m *Asm) { m.OrrImmW(a, b, short) }, "orr %s, %s, #%#x", wsp(a), w(b), short)
	f.add(func(m *Asm) { m.EorImm(a, b, long) }, "eor %s, %s, #%#x", xsp(a), x(b), long)
	f.add(func(m *Asm) { m.TstImm(b, long) }, "tst %s, #%#x", x(b), long)

	width := uint8(1 + f.IntN(64-int(by)))
	f.add(func(m *Asm) { m.Ubfx(a, b, by, width) }, "ubfx %s, %s, #%d, #%d", x(a), x(b), by, width)
	f.add(func(m *Asm) { m.Sbfx(a, b, by, width) }, "sbfx %s, %s, #%d, #%d", x(a), x(b), by, width)
	f.add(func(m *Asm) { m.Bfi(a, b, by, width) }, "bfi %s, %s, #%d, #%d", x(a), x(b), by, width)
	f.add(func(m *Asm) { m.Bfxil(a, b, by, width) }, "bfxil %s, %s, #%d, #%d", x(a), x(b), by, width)
	f.add(func(m *Asm) { m.LslImm(a, b, by) }, "lsl %s, %s, #%d", x(a), x(b), by)
	f.add(func(m *Asm) { m.LsrImm(a, b, by) }, "lsr %s, %s, #%d", x(a), x(b), by)
	f.add(func(m *Asm) { m.AsrImm(a, b, by) }, "asr %s, %s, #%d", x(a), x(b), by)
	f.add(func(m *Asm) { m.LslImmW(a, b, by&31) }, "lsl %s, %s, #%d", w(a), w(b), by&31)

	k := Cond(f.IntN(14))
	f.add(func(m *Asm) { m.Csel(a, b, c, k) }, "csel %s, %s, %s, %s", x(a), x(b), x(c), condNames[k])
	f.add(func(m *Asm) { m.Csinc(a, b, c, k) }, "csinc %s, %s, %s, %s", x(a), x(b), x(c), condNames[k])
	f.add(func(m *Asm) { m.Cset(a, k) }, "cset %s, %s", x(a), condNames[k])
	f.add(func(m *Asm) { m.FmovX(a, b) }, "fmov %s, %s", x(a), d(b))
}

// operand is a memory operand for accesses of size bytes, other than by t, and how it is written.
func (f *forms) operand(size int, t isa.Reg) (m Mem, text string, unscaled bool) {
	base := f.any()
	for base == t {
		base = f.any()
	}
	near := int32(f.IntN(512) - 256)
	switch f.IntN(6) {
	case 0:
		return Pre(base, near), fmt.Sprintf("[%s, #%d]!", xsp(base), near), false
	case 1:
		return Post(base, near), fmt.Sprintf("[%s], #%d", xsp(base), near), false
	case 2:
		near = -1 - int32(f.IntN(256))
		return At(base, near), fmt.Sprintf("[%s, #%d]", xsp(base), near), true
	case 3:
		index := f.any()
		e, name, n := UXTW, "uxtw", w
		switch f.IntN(3) {
		case 0:
			e, name, n = LSL, "lsl", x
		case 1:
			e, name = SXTW, "sxtw"
		}
		scaled := f.IntN(2) == 0
		text := fmt.Sprintf("[%s, %s, %s", xsp(base), n(index), name)
		switch {
		case scaled:
			text += fmt.Sprintf(" #%d]", bits.TrailingZeros(uint(size)))
		case e == LSL:
			text = fmt.Sprintf("[%s, %s]", xsp(base), n(index))
		default:
			text += "]"
		}
		return AtIndex(base, index, e, scaled), text, false
	}
	disp := int32(f.IntN(1<<12) * size)
	return At(base, disp), fmt.Sprintf("[%s, #%d]", xsp(base), disp), false
}

func (f *forms) memory() {
	t, n, s, u := f.reg(), f.any(), f.reg(), f.reg()
	for s == t || s == n || s == u {
		s = f.reg()
	}
	for u == t || u == s {
		u = f.reg()
	}
	for n == t || n == s || n == u {
		n = f.any()
	}
	suffix := map[int]string{1: "b", 2: "h", 4: "", 8: ""}
	one := func(emit func(m *Asm, size int, t isa.Reg, o Mem), size int, name, suffix string, reg string) {
		o, text, unscaled := f.operand(size, t)
		if unscaled {
			name = name[:2] + "u" + name[2:]
		}
		f.add(func(m *Asm) { emit(m, size, t, o) }, "%s%s %s, %s", name, suffix, reg, text)
	}
	for size, tail := range suffix {
		reg := w
		if size == 8 {
			reg = x
		}
		one((*Asm).Load, size, "ldr", tail, reg(t))
		one((*Asm).Store, size, "str", tail, reg(t))
		f.add(func(m *Asm) { m.LoadAcquire(size, t, n) }, "ldar%s %s, [%s]", tail, reg(t), xsp(n))
		f.add(func(m *Asm) { m.StoreRelease(size, t, n) }, "stlr%s %s, [%s]", tail, reg(t), xsp(n))
		for _, k := range []bool{false, true} {
			letter, other := "", ""
			if k {
				letter, other = "a", "l"
			}
			f.add(func(m *Asm) { m.LoadExclusive(size, t, n, k) }, "ld%sxr%s %s, [%s]", letter, tail, reg(t), xsp(n))
			f.add(func(m *Asm) { m.StoreExclusive(size, s, t, n, k) }, "st%sxr%s %s, %s, [%s]", other, tail, w(s), reg(t), xsp(n))
			for _, l := range []bool{false, true} {
				o := Order{Acquire: k, Release: l}
				order := letter
				if l {
					order += "l"
				}
				for name, emit := range map[string]func(m *Asm, size int, s, t, n isa.Reg, o Order){
					"ldadd": (*Asm).LoadAdd, "ldclr": (*Asm).LoadClear, "ldset": (*Asm).LoadSet, "swp": (*Asm).Swap, "cas": (*Asm).CompareSwap,
				} {
					f.add(func(m *Asm) { emit(m, size, s, t, n, o) }, "%s%s%s %s, %s, [%s]", name, order, tail, reg(s), reg(t), xsp(n))
				}
			}
		}
	}
	one((*Asm).LoadSigned, 1, "ldr", "sb", x(t))
	one((*Asm).LoadSigned, 2, "ldr", "sh", x(t))
	one((*Asm).LoadSigned, 4, "ldr", "sw", x(t))
	for size, letter := range map[int]string{1: "b", 2: "h", 4: "s", 8: "d", 16: "q"} {
		one((*Asm).LoadV, size, "ldr", "", letter+strconv.Itoa(int(t)))
		one((*Asm).StoreV, size, "str", "", letter+strconv.Itoa(int(t)))
	}
	for _, p := range []struct {
		load, store func(m *Asm, t, u isa.Reg, o Mem)
		size        int
		reg         func(isa.Reg) string
	}{{(*Asm).LoadPair, (*Asm).StorePair, 8, x}, {(*Asm).LoadPairW, (*Asm).StorePairW, 4, w}, {(*Asm).LoadPairQ, (*Asm).StorePairQ, 16, q}} {
		disp := int32((f.IntN(128) - 64) * p.size)
		operands := map[Mem]string{
			At(n, disp): fmt.Sprintf("[%s, #%d]", xsp(n), disp), Pre(n, disp): fmt.Sprintf("[%s, #%d]!", xsp(n), disp), Post(n, disp): fmt.Sprintf("[%s], #%d", xsp(n), disp),
		}
		for o, text := range operands {
			f.add(func(m *Asm) { p.load(m, t, u, o) }, "ldp %s, %s, %s", p.reg(t), p.reg(u), text)
			f.add(func(m *Asm) { p.store(m, t, u, o) }, "stp %s, %s, %s", p.reg(t), p.reg(u), text)
		}
	}
}

// control makes branches, whose distances are written as they are from the instruction on.
func (f *forms) control() {
	t, n := f.any(), f.any()
	k, number := Cond(f.IntN(14)), uint8(f.IntN(64))
	far := int64(f.IntN(1<<26)-1<<25) * 4
	mid := int64(f.IntN(1<<19)-1<<18) * 4
	odd := int64(f.IntN(1<<21) - 1<<20)
	f.add(func(m *Asm) { m.BTo(m.PC() + uint64(far)) }, "b #%d", far)
	f.add(func(m *Asm) { m.BlTo(m.PC() + uint64(far)) }, "bl #%d", far)
	f.add(func(m *Asm) { m.BCondTo(k, m.PC()+uint64(mid)) }, "b.%s #%d", condNames[k], mid)
	f.add(func(m *Asm) { m.LoadLiteral(t, m.PC()+uint64(mid)) }, "ldr %s, #%d", x(t), mid)
	f.add(func(m *Asm) { m.LoadLiteralW(t, m.PC()+uint64(mid)) }, "ldr %s, #%d", w(t), mid)
	f.add(func(m *Asm) { m.AdrTo(t, m.PC()+uint64(odd)) }, "adr %s, #%d", x(t), odd)
	page := int64(f.IntN(1<<21) - 1<<20)
	f.add(func(m *Asm) { m.AdrpTo(t, m.PC()&^0xFFF+uint64(page<<12)+77) }, "adrp %s, #%d", x(t), page<<12)

	// Over two instructions, and back to itself.
	ahead := func(emit func(m *Asm, l Label), format string, args ...any) {
		f.add(func(m *Asm) {
			l := m.NewLabel()
			emit(m, l)
			m.Nop()
			m.Place(l)
		}, format+", #8\n nop", args...)
		f.add(func(m *Asm) {
			l := m.NewLabel()
			m.Place(l)
			emit(m, l)
		}, format+", #0", args...)
	}
	ahead(func(m *Asm, l Label) { m.Cbz(t, l) }, "cbz %s", x(t))
	ahead(func(m *Asm, l Label) { m.CbzW(t, l) }, "cbz %s", w(t))
	ahead(func(m *Asm, l Label) { m.Cbnz(t, l) }, "cbnz %s", x(t))
	ahead(func(m *Asm, l Label) { m.CbnzW(t, l) }, "cbnz %s", w(t))
	ahead(func(m *Asm, l Label) { m.Tbz(t, number, l) }, "tbz %s, #%d", x(t), number)
	ahead(func(m *Asm, l Label) { m.Tbnz(t, number, l) }, "tbnz %s, #%d", x(t), number)
	ahead(func(m *Asm, l Label) { m.Adr(t, l) }, "adr %s", x(t))
	ahead(func(m *Asm, l Label) { m.LoadLiteralAt(t, l) }, "ldr %s", x(t))
	ahead(func(m *Asm, l Label) { m.LoadLiteralWAt(t, l) }, "ldr %s", w(t))
	f.add(func(m *Asm) { l := m.NewLabel(); m.Place(l); m.B(l) }, "b #0")
	f.add(func(m *Asm) { l := m.NewLabel(); m.Place(l); m.Bl(l) }, "bl #0")
	f.add(func(m *Asm) { l := m.NewLabel(); m.Nop(); m.Place(l); m.Nop(); m.BCond(k, l) }, "nop\n nop\n b.%s #-4", condNames[k])

	f.add(func(m *Asm) { m.Br(n) }, "br %s", x(n))
	f.add(func(m *Asm) { m.Blr(n) }, "blr %s", x(n))
	f.add(func(m *Asm) { m.Ret(n) }, "ret %s", x(n))
	f.add(func(m *Asm) { m.Brk(uint16(far)) }, "brk #%d", uint16(far))
	f.add(func(m *Asm) { m.Hint(number) }, "hint #%d", number)
	for name, reg := range map[string]SysReg{
		"nzcv": NZCV, "fpcr": FPCR, "fpsr": FPSR, "tpidr_el0": TPIDREL0, "cntfrq_el0": CNTFRQEL0, "cntvct_el0": CNTVCTEL0,
	} {
		f.add(func(m *Asm) { m.Mrs(t, reg) }, "mrs %s, %s", x(t), name)
		if !strings.HasPrefix(name, "cnt") || name == "cntfrq_el0" {
			f.add(func(m *Asm) { m.Msr(reg, t) }, "msr %s, %s", name, x(t))
		}
	}
	for text, emit := range map[string]func(m *Asm){
		"nop": (*Asm).Nop, "svc #0": (*Asm).Svc, "isb": (*Asm).Isb, "dmb ish": (*Asm).Dmb, "dmb ishld": (*Asm).DmbLoad, "dmb ishst": (*Asm).DmbStore,
		"bti c":   func(m *Asm) { m.Hint(HintBTIC) },
		"bti j":   func(m *Asm) { m.Hint(HintBTIJ) },
		"bti jc":  func(m *Asm) { m.Hint(HintBTIJC) },
		"paciasp": func(m *Asm) { m.Hint(HintPACIASP) },
		"pacibsp": func(m *Asm) { m.Hint(HintPACIBSP) },
		"autiasp": func(m *Asm) { m.Hint(HintAUTIASP) },
		"autibsp": func(m *Asm) { m.Hint(HintAUTIBSP) },
		"yield":   func(m *Asm) { m.Hint(HintYield) },
	} {
		f.add(emit, "%s", text)
	}
}

// assemble has LLVM's assembler encode each line, and returns the words of each.
func assemble(t *testing.T, lines []asmCase) [][]byte {
	t.Helper()
	realtest.Need(t, realtest.LLVMMc)
	var in bytes.Buffer
	for i := range lines {
		fmt.Fprintf(&in, "%s\n", lines[i].text)
	}
	path, err := realtest.LLVMMc.Find()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--triple=aarch64", "-mattr=+v8.5a", "--show-encoding")
	cmd.Stdin = &in
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %.2000s", err, errs.String())
	}
	var words [][]byte
	for line := range strings.Lines(out.String()) {
		_, list, ok := strings.Cut(line, "encoding: [")
		if !ok {
			continue
		}
		list, _, _ = strings.Cut(list, "]")
		var word []byte
		for part := range strings.SplitSeq(list, ",") {
			v, err := strconv.ParseUint(part, 0, 8)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			word = append(word, byte(v))
		}
		words = append(words, word)
	}
	var all [][]byte
	for i := range lines {
		n := strings.Count(lines[i].text, "\n") + 1
		if n > len(words) {
			t.Fatalf("fewer instructions than %d lines", len(lines))
		}
		all = append(all, bytes.Join(words[:n], nil))
		words = words[n:]
	}
	return all
}

func TestAsmEncodesAsLLVMDoes(t *testing.T) {
	f := &forms{Rand: rand.New(rand.NewPCG(21, 64))}
	for range 200 {
		f.arith()
		f.memory()
		f.control()
	}
	t.Logf("%d instructions", len(f.list))
	bad := 0
	for i, want := range assemble(t, f.list) {
		k := &f.list[i]
		a := NewAsm(asmBase, nil)
		k.emit(a)
		got, err := a.Finish()
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: % x, %v; want % x", k.text, got, err, want)
			if bad++; bad > 20 {
				t.FailNow()
			}
		}
	}
}

// run does what MOVZ, MOVN, MOVK and ORR with a number do.
func run(t *testing.T, code []byte) (v uint64) {
	t.Helper()
	for ; len(code) > 0; code = code[4:] {
		word := binary.LittleEndian.Uint32(code)
		imm, shift := uint64(word>>5&0xFFFF), word>>21&3*16
		switch word & 0xFF800000 {
		case 0xD2800000, 0x52800000:
			v = imm << shift
		case 0x92800000:
			v = ^(imm << shift)
		case 0xF2800000, 0x72800000:
			v = v&^(0xFFFF<<shift) | imm<<shift
		default:
			t.Fatalf("word %#x", word)
		}
	}
	return v
}

func TestNumbersTakeFewInstructions(t *testing.T) {
	for _, k := range []struct {
		v     uint64
		count int
	}{
		{0, 1}, {1, 1}, {0xFFFF, 1}, {0x10000, 1}, {0xFFFF_0000_0000_0000, 1}, {^uint64(0), 1}, {^uint64(1), 1}, {1 << 63, 1},
		{0x12345, 2}, {0xFFFF_FFFF_1234_5678, 2}, {0x1234_5678_9ABC, 3}, {0x1234_5678_9ABC_DEF0, 4}, {0x1234_0000_0000_5678, 2},
		{0xFFFF_1234_FFFF_5678, 2}, {0xFFFF_FFFF_FFFF_0000, 1},
	} {
		a := NewAsm(asmBase, nil)
		a.MovImm(3, k.v)
		code, err := a.Finish()
		if err != nil {
			t.Fatal(err)
		}
		if got := run(t, code); got != k.v || len(code) != 4*k.count {
			t.Errorf("%#x: %#x by %d instructions, want %d", k.v, got, len(code)/4, k.count)
		}
	}
	a := NewAsm(asmBase, nil)
	a.MovImm(3, 0x5555_5555_5555_5555)
	if a.Len() != 4 {
		t.Errorf("a mask by %d bytes", a.Len())
	}
	for _, v := range []uint32{0, 1, 0xFFFF, 0x10000, 0x12345678, 0xFFFFFFFF} {
		a := NewAsm(asmBase, nil)
		a.MovImmW(3, v)
		if code, err := a.Finish(); err != nil || run(t, code) != uint64(v) {
			t.Errorf("%#x: % x, %v", v, code, err)
		}
	}
}

func TestAsmRefusesWhatHasNoEncoding(t *testing.T) {
	far := func(d int64) uint64 { return asmBase + uint64(d) }
	for name, k := range map[string]struct {
		emit func(a *Asm)
		want error
	}{
		"b too far":           {func(a *Asm) { a.BTo(far(128 << 20)) }, ErrAsmRange},
		"b too far back":      {func(a *Asm) { a.BTo(far(-128<<20 - 4)) }, ErrAsmRange},
		"b to the middle":     {func(a *Asm) { a.BTo(far(2)) }, ErrAsmRange},
		"b.cond too far":      {func(a *Asm) { a.BCondTo(CondEQ, far(1<<20)) }, ErrAsmRange},
		"literal too far":     {func(a *Asm) { a.LoadLiteral(1, far(-1<<20-4)) }, ErrAsmRange},
		"adr too far":         {func(a *Asm) { a.AdrTo(1, far(1<<20)) }, ErrAsmRange},
		"adrp too far":        {func(a *Asm) { a.AdrpTo(1, far(4<<30)) }, ErrAsmRange},
		"large addition":      {func(a *Asm) { a.AddImm(1, 1, 4097) }, ErrAsmOperand},
		"very large addition": {func(a *Asm) { a.AddImm(1, 1, 1<<24) }, ErrAsmOperand},
		"mask of nothing":     {func(a *Asm) { a.AndImm(1, 1, 0) }, ErrAsmOperand},
		"no mask":             {func(a *Asm) { a.AndImm(1, 1, 5) }, ErrAsmOperand},
		"odd displacement":    {func(a *Asm) { a.Load(8, 1, At(2, 257)) }, ErrAsmOperand},
		"displacement":        {func(a *Asm) { a.Load(8, 1, At(2, 32768)) }, ErrAsmOperand},
		"pair's":              {func(a *Asm) { a.LoadPair(1, 2, At(3, 512)) }, ErrAsmOperand},
		"pair by index":       {func(a *Asm) { a.LoadPair(1, 2, AtIndex(3, 4, LSL, false)) }, ErrAsmOperand},
		"size":                {func(a *Asm) { a.Store(3, 1, At(2, 0)) }, ErrAsmOperand},
		"shift":               {func(a *Asm) { a.Movz(1, 1, 8) }, ErrAsmOperand},
		"status":              {func(a *Asm) { a.StoreExclusive(8, 1, 1, 2, false) }, ErrAsmOperand},
		"tbz too far": {func(a *Asm) {
			l := a.NewLabel()
			a.Tbz(1, 3, l)
			a.Extend(32 << 10)
			a.Place(l)
		}, ErrAsmRange},
	} {
		a := NewAsm(asmBase, nil)
		k.emit(a)
		if _, err := a.Finish(); !errors.Is(err, k.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	a := NewAsm(asmBase, nil)
	a.B(a.NewLabel())
	if _, err := a.Finish(); err == nil {
		t.Error("a label that was never placed")
	}
}
