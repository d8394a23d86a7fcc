package arm64

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// comparison counts what was seen and where the decoder differs.
type comparison struct {
	words, known, scalable, targets, different int
	seen                                       [classCount]int
	byWhat                                     map[string]int
}

func (c *comparison) differ(t *testing.T, what string, l listed, format string, args ...any) {
	t.Helper()
	c.different++
	if c.byWhat == nil {
		c.byWhat = map[string]int{}
	}
	c.byWhat[what]++
	if c.byWhat[what] <= 4 && c.different <= 60 {
		t.Errorf("%08x: %s %s: %s", l.word, l.mnemonic, strings.Join(l.operands, ", "), fmt.Sprintf(format, args...))
	}
}

func (c *comparison) report(t *testing.T) {
	t.Helper()
	t.Logf("%d words, %d known, %d of them in SVE's and SME's space, %d targets, %d differences", c.words, c.known, c.scalable, c.targets, c.different)
	if c.different > 60 {
		t.Errorf("%d differences: %v", c.different, c.byWhat)
	}
	for k, n := range c.seen {
		if n == 0 {
			t.Logf("no word of class %v", Class(k))
		}
	}
}

// compare holds the decoder's answers against one line.
func (c *comparison) compare(t *testing.T, l listed) {
	t.Helper()
	c.words++
	var i Inst
	err := DecodeWord(&i, l.word)
	if i.Class == SVE || i.Class == SME {
		c.scalable++
		if l.known {
			c.known++
			c.seen[i.Class]++
			c.compareBounds(t, l, &i)
		}
		return
	}
	if l.known && err != nil && l.madeUp() {
		return
	}
	if l.known != (err == nil) {
		c.differ(t, fmt.Sprintf("valid%02x", l.word>>25), l, "known %v, here %v, %v", l.known, err == nil, i.Class)
		return
	}
	if !l.known {
		return
	}
	c.known++
	c.seen[i.Class]++
	if want := l.kind(); i.Kind != want {
		c.differ(t, "kind "+l.mnemonic, l, "kind %v, want %v", i.Kind, want)
	}
	c.compareTarget(t, l, &i)
	if i.Class == System || i.Kind == Syscall {
		return
	}
	c.compareOperand(t, l, &i)
	read, written := l.registers()
	if i.written != written {
		c.differ(t, "written "+l.mnemonic, l, "writes %s, want %s", masked(i.written), masked(written))
	}
	if i.read != read {
		c.differ(t, "read "+l.mnemonic, l, "reads %s, want %s", masked(i.read), masked(read))
	}
	if want := l.readsFlags(); i.readsFlags != want {
		c.differ(t, "flags read "+l.mnemonic, l, "reads flags: %v", i.readsFlags)
	}
	if want := l.writesFlags(); i.writesFlags != want {
		c.differ(t, "flags written "+l.mnemonic, l, "writes flags: %v", i.writesFlags)
	}
}

// compareOperand compares the memory operand: base, displacement and what becomes of the base.
func (c *comparison) compareOperand(t *testing.T, l listed, i *Inst) {
	t.Helper()
	if i.Class == MemoryCopy {
		return
	}
	for k, o := range l.operands {
		inner, ok := strings.CutPrefix(o, "[")
		if !ok {
			continue
		}
		base, rest, _ := strings.Cut(strings.TrimRight(inner, "]!"), ",")
		post := k+1 < len(l.operands) && !strings.HasSuffix(o, "!")
		if post {
			rest = l.operands[k+1]
		}
		if m := register(base); m != i.Base.Mask() || post != i.PostIndex || i.Writeback != (post || strings.HasSuffix(o, "!")) {
			c.differ(t, "base "+l.mnemonic, l, "base %v, written %v, after %v", i.Base, i.Writeback, i.PostIndex)
		}
		disp := int64(0)
		if _, number, ok := strings.Cut(rest, "#"); ok && !strings.Contains(rest, "x") && !strings.Contains(rest, "w") {
			disp, _ = strconv.ParseInt(number, 10, 64)
		}
		structure := i.Base != NoReg && i.PostIndex && i.vectorStructure()
		if int64(i.Disp) != disp && !structure {
			c.differ(t, "displacement "+l.mnemonic, l, "displacement %d", i.Disp)
		}
		return
	}
	if i.Base != NoReg {
		c.differ(t, "operand "+l.mnemonic, l, "base %v", i.Base)
	}
}

// compareFlow compares validity, kind and target alone.
func (c *comparison) compareFlow(t *testing.T, l listed) {
	t.Helper()
	c.words++
	if !l.known || l.madeUp() {
		return
	}
	c.known++
	var i Inst
	if err := DecodeWord(&i, l.word); err != nil {
		c.differ(t, fmt.Sprintf("valid%02x", l.word>>25), l, "%v", err)
		return
	}
	c.seen[i.Class]++
	if want := l.kind(); i.Kind != want {
		c.differ(t, "kind "+l.mnemonic, l, "kind %v, want %v", i.Kind, want)
	}
	c.compareTarget(t, l, &i)
}

// compareBounds compares what is bounded only.
func (c *comparison) compareBounds(t *testing.T, l listed, i *Inst) {
	t.Helper()
	read, written := l.registers()
	if strings.HasPrefix(l.mnemonic, "cterm") {
		written = 0
	}
	if written&^i.written != 0 || read&^i.read != 0 {
		c.differ(t, "bounds "+l.mnemonic, l, "reads %s and writes %s", masked(i.read), masked(i.written))
	}
	if i.PCRelative {
		c.differ(t, "relative "+l.mnemonic, l, "is relative to PC")
	}
}

func masked(m uint32) string {
	var names []string
	for r := range Reg(32) {
		if m&r.Mask() != 0 {
			names = append(names, r.String())
		}
	}
	return "{" + strings.Join(names, " ") + "}"
}

// compareTarget compares what a PC-relative instruction names.
func (c *comparison) compareTarget(t *testing.T, l listed, i *Inst) {
	t.Helper()
	target, ok := i.Target(l.pc)
	if !ok {
		target, ok = i.MemTarget(l.pc)
	}
	if !ok && i.PCRelative {
		target, ok = l.pc+uint64(i.Rel), true
	}
	if !ok {
		return
	}
	c.targets++
	for _, operand := range l.operands {
		text, _, _ := strings.Cut(operand, " ")
		if want, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64); err == nil && strings.HasPrefix(text, "0x") {
			if target != want {
				c.differ(t, "target", l, "target %#x", target)
			}
			return
		}
	}
	c.differ(t, "no target", l, "names %#x", target)
}

// madeUp reports whether a disassembler gave a system register's name to a word that moves to or from none (where op0 is
// zero, nothing is allocated beside what has a name of its own, and there are no pairs where it is one); or, as GNU's does,
// prints a widening multiplication whose size isn't allocated or a 64-byte access from a register that the manual excludes.
func (l *listed) madeUp() bool {
	m := l.mnemonic
	for _, o := range l.operands {
		o = strings.ToUpper(o)
		if strings.HasPrefix(o, "S0_") || strings.HasPrefix(o, "S1_") && (m == "mrrs" || m == "msrr") {
			return true
		}
	}
	return (strings.HasPrefix(m, "fmlal") || strings.HasPrefix(m, "fmlsl")) && l.word>>22&1 != 0 ||
		(strings.HasPrefix(m, "st64b") || m == "ld64b") && (l.word&1 != 0 || l.word&31 > 22)
}

// kind says what an instruction with this mnemonic is.
func (l *listed) kind() Kind {
	m := l.mnemonic
	switch m {
	case "b":
		return Jump
	case "bl":
		return Call
	case "cbz", "cbnz", "tbz", "tbnz":
		return CondJump
	case "svc", "hvc", "smc":
		return Syscall
	case "brk", "hlt", "dcps1", "dcps2", "dcps3":
		return Breakpoint
	case "tcancel":
		return Breakpoint
	case "udf":
		return Undefined
	case "eret", "eretaa", "eretab", "drps":
		return ExceptionReturn
	case "br", "braa", "brab", "braaz", "brabz":
		return IndirectJump
	case "blr", "blraa", "blrab", "blraaz", "blrabz":
		return IndirectCall
	}
	switch {
	case strings.HasPrefix(m, "b."), strings.HasPrefix(m, "bc."):
		return CondJump
	case strings.HasPrefix(m, "ret"):
		return Return
	}
	return Other
}

// readsFlags and writesFlags say whether an instruction with this mnemonic does, by what manuals say.
func (l *listed) readsFlags() bool {
	switch m := l.mnemonic; m {
	case "adc", "adcs", "sbc", "sbcs", "ngc", "ngcs", "ccmp", "ccmn", "fccmp", "fccmpe", "csel", "csinc", "csinv", "csneg", "cset", "csetm", "cinc",
		"cinv", "cneg", "fcsel", "cfinv", "axflag", "xaflag", "rmif", "setf8", "setf16":
		return true
	case "brk", "hlt", "svc", "hvc", "smc", "dcps1", "dcps2", "dcps3", "tcancel":
		return true
	case "mrs":
		return len(l.operands) == 2 && l.operands[1] == "NZCV"
	default:
		return strings.HasPrefix(m, "b.") || strings.HasPrefix(m, "bc.") || l.copies()
	}
}

func (l *listed) writesFlags() bool {
	switch m := l.mnemonic; m {
	case "adds", "subs", "ands", "bics", "cmp", "cmn", "tst", "negs", "adcs", "sbcs", "ngcs", "ccmp", "ccmn", "fcmp", "fcmpe", "fccmp", "fccmpe",
		"cfinv", "axflag", "xaflag", "rmif", "setf8", "setf16", "subps", "cmpp", "fjcvtzs":
		return true
	case "msr":
		return len(l.operands) == 2 && l.operands[0] == "NZCV"
	case "mrs":
		return len(l.operands) == 2 && strings.HasPrefix(l.operands[1], "RNDR")
	default:
		return strings.HasPrefix(m, "rcw") || l.copies()
	}
}

// copies reports whether this is one of the instructions that copy or set memory.
func (l *listed) copies() bool {
	return strings.HasPrefix(l.mnemonic, "cpy") || strings.HasPrefix(l.mnemonic, "set") && !strings.HasPrefix(l.mnemonic, "setf")
}

// registers returns the general registers that the text says are read and written.
func (l *listed) registers() (read, written uint32) {
	m := l.mnemonic
	switch m {
	case "paciasp", "pacibsp", "autiasp", "autibsp":
		return 1<<LR | spBit, 1 << LR
	case "paciaz", "pacibz", "autiaz", "autibz", "xpaclri":
		return 1 << LR, 1 << LR
	case "pacia1716", "pacib1716", "autia1716", "autib1716":
		return 1<<X16 | 1<<X17, 1 << X17
	case "paciasppc", "pacibsppc", "pacnbiasppc", "pacnbibsppc", "autiasppc", "autibsppc":
		return 1<<LR | spBit, 1 << LR
	case "autiasppcr", "autibsppcr":
		return all(l.operands[0]) | 1<<LR | spBit, 1 << LR
	case "pacia171615", "pacib171615", "autia171615", "autib171615":
		return 1<<15 | 1<<16 | 1<<17 | 1<<LR | spBit, 1<<LR | 1<<17
	case "retaa", "retab", "retaasppc", "retabsppc", "retaasppcr", "retabsppcr":
		for _, o := range l.operands {
			read |= all(o)
		}
		return read | 1<<LR | spBit, 1 << LR
	case "eretaa", "eretab":
		return spBit, 0
	case "chkfeat":
		return 1 << X16, 1 << X16
	case "ret":
		if len(l.operands) == 0 {
			return 1 << LR, 0
		}
	}
	written = l.results()
	for k, o := range l.operands {
		if strings.ContainsAny(o, "[]!") || !l.isResult(k) || l.keepsResult() {
			read |= all(o)
		}
		if strings.HasPrefix(m, "st64b") && k == len(l.operands)-2 {
			read |= all(o) * 0xFF // eight from there on
		}
	}
	return read, written
}

// results returns the registers that are written.
func (l *listed) results() (written uint32) {
	if l.kind() == Call || l.kind() == IndirectCall {
		return 1 << LR
	}
	for k, o := range l.operands {
		switch {
		case strings.HasSuffix(o, "!"): // with base or, for copies, any register written back
			written |= first(o)
		case strings.HasSuffix(o, "]") && k+1 < len(l.operands) && strings.HasPrefix(o, "["):
			written |= first(o) // post-indexed
		case l.isResult(k):
			written |= all(o)
		}
	}
	if l.mnemonic == "ld64b" {
		written *= 0xFF // eight from there on
	}
	return written
}

// isResult reports whether operand k is a register that is written, and read only if keepsResult.
func (l *listed) isResult(k int) bool {
	m := l.mnemonic
	has := func(prefixes ...string) bool {
		for _, p := range prefixes {
			if strings.HasPrefix(m, p) {
				return true
			}
		}
		return false
	}
	switch {
	case l.kind() != Other || l.copies():
		return false
	case strings.HasPrefix(strings.Trim(l.operands[k], "{ "), "za"): // by slices that a register selects
		return false
	case has("stxr", "stxp", "stlxr", "stlxp", "st64bv"):
		return k == 0
	case has("casp", "rcwcasp", "rcwscasp"):
		return k < 2
	case has("cas", "rcwcas", "rcwscas"):
		return k == 0
	case has("swpp", "ldclrp", "ldsetp"):
		return k < 2
	case has("rcw") && l.pair():
		return k < 2
	case has("swp", "ldadd", "ldclr", "ldeor", "ldset", "ldsmax", "ldsmin", "ldumax", "ldumin", "rcw"):
		return k == 1
	case has("ldp", "ldnp", "ldxp", "ldaxp", "ldpsw", "ldiapp", "mrrs"):
		return k < 2
	case has("st", "cmp", "cmn", "tst", "ccmp", "ccmn", "msr", "sys", "prf", "rprfm", "gcsstr", "gcssttr", "rmif", "setf", "hint", "bti"):
		return false
	}
	return k == 0
}

// pair reports whether an instruction of THE has two registers of each kind.
func (l *listed) pair() bool {
	for _, p := range []string{"rcwclrp", "rcwswpp", "rcwsetp", "rcwsclrp", "rcwsswpp", "rcwssetp"} {
		if strings.HasPrefix(l.mnemonic, p) {
			return true
		}
	}
	return false
}

// keepsResult reports whether what is written is read first.
func (l *listed) keepsResult() bool {
	m := l.mnemonic
	for _, p := range []string{"bf", "movk", "pac", "aut", "xpac", "cas", "rcwcas", "rcwscas", "swpp", "ldclrp", "ldsetp", "ldg"} {
		if strings.HasPrefix(m, p) && m != "pacga" && m != "ldgm" {
			return true
		}
	}
	return l.pair()
}

// first returns the mask of the first register of an operand.
func first(operand string) uint32 {
	for _, word := range words(operand) {
		if m := register(word); m != 0 {
			return m
		}
	}
	return 0
}

// all returns the mask of all general registers in an operand.
func all(operand string) (m uint32) {
	for _, word := range words(operand) {
		m |= register(word)
	}
	return m
}

func words(operand string) []string {
	return strings.FieldsFunc(operand, func(r rune) bool { return strings.ContainsRune("[]{}!, ", r) })
}

// register returns the mask of x0 to x30, w0 to w30, sp and wsp.
func register(word string) uint32 {
	switch word {
	case "sp", "wsp":
		return spBit
	}
	if len(word) < 2 || word[0] != 'x' && word[0] != 'w' {
		return 0
	}
	if n, err := strconv.Atoi(word[1:]); err == nil && n <= 30 {
		return 1 << n
	}
	return 0
}
