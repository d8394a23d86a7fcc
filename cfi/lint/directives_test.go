package lint

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/internal/realtest"
)

// directive is one call frame instruction other than an advance, with the address that it takes effect at. The assembler
// makes one of each .cfi directive.
type directive struct {
	at   uint64
	code []byte
}

// Call frame instructions (DWARF 5 §7.24) that the generator tells apart.
const (
	dwAdvance1       = 0x02
	dwAdvance4       = 0x04
	dwRememberState  = 0x0a
	dwRestoreState   = 0x0b
	dwDefCFA         = 0x0c
	dwDefCFAReg      = 0x0d
	dwDefCFAOffset   = 0x0e
	dwDefCFAExpr     = 0x0f
	dwExpression     = 0x10
	dwArgsSize       = 0x2e
	dwNegateRAWithPC = 0x2c
	dwNegateRAState  = 0x2d
	dwOffsetExtended = 0x05
	dwHighAdvance    = 0x40
	dwHighOffset     = 0x80
	dwHighRestore    = 0xc0
)

// operands is the number of LEB128 operands of an instruction, and whether a block of bytes follows them.
func operands(op byte) (n int, block, known bool) {
	switch op {
	case 0, dwRememberState, dwRestoreState, dwNegateRAState, dwNegateRAWithPC:
		return 0, false, true
	case 0x06, 0x07, 0x08, dwDefCFAReg, dwDefCFAOffset, 0x13, dwArgsSize:
		return 1, false, true
	case 0x05, 0x09, dwDefCFA, 0x11, 0x12, 0x14, 0x15, 0x2f:
		return 2, false, true
	case dwDefCFAExpr:
		return 0, true, true
	case dwExpression, 0x16:
		return 1, true, true
	}
	switch op & 0xc0 {
	case dwHighOffset:
		return 1, false, true
	case dwHighRestore:
		return 0, false, true
	}
	return 0, false, false
}

// directivesOf takes an FDE's program apart; false for programs with instructions that are not known here.
func directivesOf(f *cfi.FDE) (list []directive, ok bool) {
	p, at := f.Program(), f.Start
	for len(p) > 0 {
		op := p[0]
		switch {
		case op&0xc0 == dwHighAdvance:
			at += uint64(op&0x3f) * f.CIE.CodeAlign
			p = p[1:]
			continue
		case op >= dwAdvance1 && op <= dwAdvance4:
			n := 1 << (op - dwAdvance1)
			var raw [8]byte
			copy(raw[:], p[1:1+n])
			at += binary.LittleEndian.Uint64(raw[:]) * f.CIE.CodeAlign
			p = p[1+n:]
			continue
		}
		n, block, known := operands(op)
		if !known {
			return nil, false
		}
		size := 1
		for range n {
			_, k := binary.Uvarint(p[size:])
			size += k
		}
		if block {
			length, k := binary.Uvarint(p[size:])
			size += k + int(length)
		}
		if op != 0 {
			list = append(list, directive{at, p[:size]})
		}
		p = p[size:]
	}
	return list, true
}

// program makes a program of directives, which come back in the order of their addresses.
func program(f *cfi.FDE, list []directive) []byte {
	slices.SortStableFunc(list, func(a, b directive) int { return cmp.Compare(a.at, b.at) })
	var p []byte
	at := f.Start
	for _, d := range list {
		if d.at > at {
			p = binary.LittleEndian.AppendUint32(append(p, dwAdvance4), uint32((d.at-at)/f.CIE.CodeAlign))
			at = d.at
		}
		p = append(p, d.code...)
	}
	return p
}

// mistake is one thing that somebody who writes or makes directives gets wrong.
type mistake struct {
	class string
	list  []directive
	fde   int
	what  string
}

// mistakes makes every single mistake in an FDE: each directive left out, given an instruction too late or too early, and
// with another register or number.
func (m *mutants) mistakes(fde int, yield func(mistake)) {
	f := &m.l.fdes[fde]
	list, ok := directivesOf(f)
	if !ok {
		return
	}
	p := part{start: f.Start, end: f.End}
	var err error
	if p.code, err = m.im.ReadAddr(f.Start, f.End-f.Start); err != nil {
		return
	}
	var starts []uint64
	m.p.sweepAll(&p, func(addr uint64) {
		if !m.p.isPadding(&p, addr) {
			starts = append(starts, addr)
		}
	})
	for k, d := range list {
		put := func(class string, with ...directive) {
			changed := slices.Concat(list[:k:k], with, list[k+1:])
			yield(mistake{class: class + " " + nameOf(d.code), list: changed, fde: fde, what: fmt.Sprintf("%x at %#x -> %x", d.code, d.at, with)})
		}
		put("without")
		n, exact := slices.BinarySearch(starts, d.at)
		if exact && n+1 < len(starts) {
			put("late", directive{starts[n+1], d.code})
		}
		if exact && n > 0 {
			put("early", directive{starts[n-1], d.code})
		}
		for _, code := range m.p.altered(d.code) {
			put("altered", directive{d.at, code})
		}
	}
}

// altered lists what a directive becomes with one of its operands taken for another.
func (p *processor) altered(code []byte) (list [][]byte) {
	with := func(at int, b byte) {
		c := slices.Clone(code)
		c[at] = b
		list = append(list, c)
	}
	number := func(at int, step byte) { // of one byte
		if code[at] >= step && code[at] < 0x80-step {
			with(at, code[at]+step)
			with(at, code[at]-step)
		}
	}
	var rbx, rbp, rsp, r10, r12 byte = 3, 6, 7, 10, 12
	if p.keepsRA() { // arm64's
		rbx, rbp, rsp, r10, r12 = 19, 29, 31, 10, 21
	}
	others := func(at int, regs ...byte) {
		for _, r := range regs {
			if r != code[at] {
				with(at, r)
			}
		}
	}
	switch op := code[0]; {
	case op == dwDefCFAOffset:
		number(1, 8)
	case op == dwDefCFA:
		number(2, 8)
		others(1, rbp, rsp, r10)
	case op == dwDefCFAReg:
		others(1, rbp, rsp, r10, rbx)
	case op == dwDefCFAExpr && len(code) > 3:
		// Compilers write an expression of a base register, an offset of one byte and a dereference.
		with(3, code[3]&0x80|(code[3]+8)&0x7f)
		with(3, code[3]&0x80|(code[3]-8)&0x7f)
		if code[2] >= opBreg0 && code[2] < 0x90 {
			others(2, opBreg0+rbp, opBreg0+rsp, opBreg0+r10)
		}
		if code[len(code)-1] == opDeref {
			c := slices.Clone(code[:len(code)-1])
			c[1]--
			list = append(list, c)
		}
	case op == dwExpression && len(code) > 4:
		with(4, code[4]&0x80|(code[4]+8)&0x7f)
		with(4, code[4]&0x80|(code[4]-8)&0x7f)
		others(1, rbx, rbp, r12)
	case op&0xc0 == dwHighOffset:
		number(1, 1)
		others(0, dwHighOffset|rbx, dwHighOffset|rbp, dwHighOffset|r12)
	case op == dwOffsetExtended && len(code) == 3:
		number(2, 1)
	case op&0xc0 == dwHighRestore:
		others(0, dwHighRestore|rbx, dwHighRestore|rbp, dwHighRestore|r12)
	case op == dwRememberState:
		with(0, 0)
	case op == dwRestoreState:
		with(0, dwRememberState)
	}
	return list
}

func nameOf(code []byte) string {
	switch op := code[0]; {
	case op == dwRememberState:
		return "remember_state"
	case op == dwRestoreState:
		return "restore_state"
	case op == dwDefCFA, op == 0x12:
		return "def_cfa"
	case op == dwDefCFAReg:
		return "def_cfa_register"
	case op == dwDefCFAOffset, op == 0x13:
		return "def_cfa_offset"
	case op == dwDefCFAExpr:
		return "escape (def_cfa_expression)"
	case op == dwExpression:
		return "escape (expression)"
	case op == dwArgsSize:
		return "args_size"
	case op == dwNegateRAState, op == dwNegateRAWithPC:
		return "negate_ra_state"
	case op&0xc0 == dwHighOffset:
		return "offset"
	case op&0xc0 == dwHighRestore:
		return "restore"
	default:
		return fmt.Sprintf("instruction %#x", op)
	}
}

// rowsWith returns the rows that an FDE has with other directives, and whether they can be read.
func (m *mutants) rowsWith(t testing.TB, fde int, list []directive) ([]row, bool) {
	f := &m.l.fdes[fde]
	p := program(f, list)
	// A record with another program stands behind the section's others.
	head := offsetOf(m.data, f) - f.Offset
	record := slices.Concat(m.data[f.Offset:f.Offset+head], p)
	for len(record)%4 != 0 {
		record = append(record, 0)
	}
	end := uint64(len(bytesUpToEnd(m.data)))
	binary.LittleEndian.PutUint32(record, uint32(len(record)-4))
	moved := end - f.Offset
	for _, at := range []int{4, 8} { // to the CIE, and to the code
		delta := uint32(moved)
		if at == 8 {
			delta = -delta
		}
		binary.LittleEndian.PutUint32(record[at:], binary.LittleEndian.Uint32(record[at:])+delta)
	}
	data := slices.Concat(m.data[:end], record, make([]byte, 4))
	table, err := cfi.OpenEHFrame(cfi.Section{Data: emptyHeader(m.addr), Addr: m.addr - 64}, cfi.Section{Data: data, Addr: m.addr}, cfi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	changed, err := table.FDEAt(end)
	if err != nil {
		t.Fatal(err)
	}
	if changed.Start != f.Start || changed.End != f.End {
		t.Fatalf("FDE for %#x..%#x, want %#x..%#x", changed.Start, changed.End, f.Start, f.End)
	}
	var machine cfi.Machine
	left := 1 << 20
	rows, err := rowsOf(&machine, changed, &left)
	return rows, err == nil && machine.Remembered() == 0 && !machine.Irregular() && (len(rows) == 0 || rows[len(rows)-1].End <= f.End) &&
		m.l.badExpression(rows) == nil
}

// bytesUpToEnd returns the section without the zero word that ends it.
func bytesUpToEnd(data []byte) []byte {
	if n := len(data); n >= 4 && binary.LittleEndian.Uint32(data[n-4:]) == 0 {
		return data[:n-4]
	}
	return data
}

// tryMistake lints a function with a mistake.
func (m *mutants) tryMistake(t testing.TB, x mistake) outcome {
	rows, readable := m.rowsWith(t, x.fde, x.list)
	if !readable {
		return caught
	}
	return m.judgeRows(x.fde, rows)
}

// TestSingleMistakesAreFound makes every single mistake in the directives of compilers' functions, and as many at random in
// those of libraries, whose assembly is written by hand. Of those that make a row untrue at least 97 in 100 are to be found. A
// mistake whose rows are proven to be true still, such as that of a register that is saved already but not overwritten, is none.
// CALLREEL_MUTANTS, if not empty, has each listed that is missed.
func TestSingleMistakesAreFound(t *testing.T) {
	const share = 0.97
	const handWritten = 0.85 // of code that switches stacks, and keeps frames where nothing can be said of them
	for _, c := range []realtest.Capability{realtest.GCC, realtest.Clang} {
		for _, flags := range []string{"-O0", "-O2", "-O2 -mstackrealign", "-O2 -fno-omit-frame-pointer"} {
			t.Run(string(c)+" "+flags, func(t *testing.T) {
				realtest.Need(t, realtest.AMD64, c)
				atLeast(t, build(t, c, cSource, ".c", strings.Fields(flags)...), share)
			})
		}
	}
	libraries := map[string]float64{"libm.so.6": share, "libcrypto.so.3": share, "libgcc_s.so.1": share, "libffi.so.8": handWritten}
	if runtime.GOARCH == "arm64" { // where compilers say when a register is itself again, and libgcc's unwinder of two dozens at once
		libraries = map[string]float64{"libm.so.6": 0.94, "libcrypto.so.3": 0.94, "libgcc_s.so.1": handWritten, "libffi.so.8": handWritten}
	}
	for name, share := range libraries {
		t.Run(name, func(t *testing.T) { atLeast(t, library(t, name), share) })
	}
	t.Run("hand-written", func(t *testing.T) {
		realtest.Need(t, realtest.AMD64, realtest.GCC)
		atLeast(t, assemble(t, unusual, ""), handWritten)
	})
}

// atLeast makes mistakes in a file, no more than mostMistakes, and fails if less than a share of them is found.
func atLeast(t *testing.T, path string, share float64) {
	const mostMistakes, mostKept = 1000, 100_000
	m := newMutants(t, path)
	var all []mistake
	for k := range m.l.fdes {
		if m.owner[k] != nil && len(all) < mostKept {
			m.mistakes(k, func(x mistake) { all = append(all, x) })
		}
	}
	random := rand.New(rand.NewPCG(3, 4))
	random.Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
	counts := map[outcome]int{}
	classes := map[string]int{}
	for _, x := range all[:min(mostMistakes, len(all))] {
		got := m.tryMistake(t, x)
		counts[got]++
		if got == missed {
			classes[x.class]++
			if os.Getenv("CALLREEL_MUTANTS") != "" {
				t.Logf("missed: FDE %#x: %s: %s", m.l.fdes[x.fde].Start, x.class, x.what)
			}
		}
	}
	matter := counts[caught] + counts[missed]
	if matter < 100 {
		t.Fatalf("only %d mistakes were made", matter)
	}
	rate := float64(counts[caught]) / float64(matter)
	t.Logf("%d mistakes can be made: %d alter no row, %d the row of no instruction, %d rows that are true still; %d are found, %d missed: %.1f %%",
		len(all), counts[sameRows], counts[unseen], counts[stillTrue], counts[caught], counts[missed], 100*rate)
	for class, n := range classes {
		t.Logf("%4d missed: %s", n, class)
	}
	if rate < share {
		t.Errorf("only %.1f %% are found", 100*rate)
	}
}
