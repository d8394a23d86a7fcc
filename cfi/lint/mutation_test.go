package lint

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

// mutants changes bytes of an image's FDE programs, one at a time, and lints the functions that they belong to.
type mutants struct {
	im        *object.Image
	p         *processor
	l         *linter
	data      []byte
	addr      uint64
	functions []*function
	owner     map[int]*function // by FDE
	rows      [][]row           // by FDE
	checker   checker
	clean     map[*function]string // findings without a change
}

func newMutants(t testing.TB, path string) *mutants {
	t.Helper()
	im, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { im.Close() })
	table, _, err := read(im)
	if err != nil {
		t.Fatal(err)
	}
	data, addr, err := im.EHFrame()
	if err != nil {
		t.Fatal(err)
	}
	m := &mutants{
		im: im, data: bytes.Clone(data), addr: addr, owner: map[int]*function{}, clean: map[*function]string{},
		l: newLinter(im, table), checker: checker{read: im.ReadAddr},
	}
	if m.l.symbols, err = im.FunctionSymbols(); err != nil {
		t.Fatal(err)
	}
	m.l.readRows()
	m.p = processorOf(im.Arch)
	m.functions = m.l.functions(m.p)
	m.rows = make([][]row, len(m.l.fdes))
	var machine cfi.Machine
	for _, f := range m.functions {
		m.l.fill(&machine, f)
		for k := range f.parts {
			m.owner[f.parts[k].fde], m.rows[f.parts[k].fde] = f, f.parts[k].rows
		}
	}
	return m
}

// check lints a function whose FDE fde has other rows.
func (m *mutants) check(f *function, fde int, rows []row) string {
	c := f.with(fde, rows)
	var b strings.Builder
	for _, x := range m.checker.check(c) {
		fmt.Fprintf(&b, "%s %#x %s %s\n", x.Kind, x.Address, x.Says, x.Truth)
	}
	return b.String()
}

// outcome is what became of a change.
type outcome int

const (
	sameRows outcome = iota // no row was altered
	unseen                  // rows were altered, but not that of any instruction
	caught
	missed
	stillTrue // rows were altered, and what they say now is proven to be so too
)

// try changes the byte at an offset of the section, which is in the program of an FDE.
func (m *mutants) try(t testing.TB, fde int, at uint64, b byte) (outcome, []row) {
	f := &m.l.fdes[fde]
	old := m.data[at]
	m.data[at] = b
	defer func() { m.data[at] = old }()
	table, err := cfi.OpenEHFrame(cfi.Section{Data: emptyHeader(m.addr), Addr: m.addr - 64}, cfi.Section{Data: m.data, Addr: m.addr}, cfi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	changed, err := table.FDEAt(f.Offset)
	if err != nil {
		return caught, nil
	}
	var machine cfi.Machine
	left := 1 << 20
	rows, err := rowsOf(&machine, changed, &left)
	if err != nil || machine.Remembered() > 0 || len(rows) > 0 && rows[len(rows)-1].End > f.End {
		return caught, rows
	}
	if m.l.badExpression(rows) != nil {
		return caught, rows
	}
	return m.judgeRows(fde, rows), rows
}

// judgeRows lints the function of an FDE whose rows are replaced.
func (m *mutants) judgeRows(fde int, rows []row) outcome {
	function := m.owner[fde]
	altered, seen := m.differs(function, fde, m.rows[fde], rows)
	if !altered {
		return sameRows
	}
	clean, ok := m.clean[function]
	if !ok {
		clean = m.check(function, -1, nil)
		m.clean[function] = clean
	}
	switch m.check(function, fde, rows) {
	case clean:
		if !seen {
			return unseen
		}
		if m.proven(function, fde, rows) {
			return stillTrue
		}
		return missed
	}
	return caught
}

// proven says whether each rule in which the rows differ from those before was proven to be right.
func (m *mutants) proven(f *function, fde int, rows []row) bool {
	k := slices.IndexFunc(f.parts, func(p part) bool { return p.fde == fde })
	was := f.parts[k]
	c := f.with(fde, rows)
	for i := range c.parts {
		c.parts[i].nodes = make([]int32, len(c.parts[i].code))
	}
	got, _ := m.checker.follow(c, m.checker.decode(c))
	if got == nil {
		return false
	}
	right := map[uint64]uint64{}
	for _, x := range got.marks {
		right[x.addr] = x.right
	}
	is := &c.parts[k]
	same := true
	m.p.sweepAll(&was, func(addr uint64) {
		x, y := was.rowAt(addr), is.rowAt(addr)
		if same && m.p.isPadding(&was, addr) {
			return
		}
		same = same && x != nil && y != nil && m.p.differing(x, y)&^right[addr] == 0
	})
	return same
}

// differing is the set of what two rows say differently, as in marks.
func (p *processor) differing(x, y *row) (set uint64) {
	if x.RASigned != y.RASigned {
		set |= 1 << p.ra
	}
	if !sameRule(&x.CFA, &y.CFA) {
		set |= 1 << bitCFA
	}
	for _, list := range [][]cfi.RegRule{x.Regs, y.Regs} {
		for _, r := range list {
			a, b := x.Reg(r.Reg), y.Reg(r.Reg)
			if sameRule(&a, &b) {
				continue
			}
			reg, ok := p.general(r.Reg)
			switch {
			case r.Reg == x.RAReg:
				set |= 1 << p.ra
			case ok:
				set |= 1 << reg
			default:
				set |= 1 << bitOther
			}
		}
	}
	return set
}

func (p *processor) isPadding(at *part, addr uint64) bool {
	var in inst
	return p.decode(&in, at.code[addr-at.start:], addr) && in.padding
}

// with is the function with other rows in an FDE.
func (f *function) with(fde int, rows []row) *function {
	c := &function{p: f.p}
	for _, p := range f.parts {
		if p.fde == fde && rows != nil {
			p.rows = rows
		}
		c.parts = append(c.parts, p)
	}
	return c
}

// emptyHeader is an .eh_frame_hdr of one entry, 64 bytes before .eh_frame: FDEs are asked for by offset.
func emptyHeader(frame uint64) []byte {
	return []byte{1, 0x1b, 0x03, 0x3b, 60, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
}

// differs says whether the rows differ anywhere, and whether they do at the start of an instruction, by decoding from
// the FDE's start on.
func (m *mutants) differs(f *function, fde int, a, b []row) (altered, seen bool) {
	k := slices.IndexFunc(f.parts, func(p part) bool { return p.fde == fde })
	was, is := f.parts[k], f.parts[k]
	was.rows, is.rows = a, b
	starts := map[uint64]bool{}
	m.p.sweepAll(&was, func(addr uint64) { starts[addr] = !m.p.isPadding(&was, addr) })
	for addr := was.start; addr < was.end; addr++ {
		x, y := was.rowAt(addr), is.rowAt(addr)
		if (x == nil) != (y == nil) || x != nil && !x.sameRules(y) {
			altered = true
			seen = seen || starts[addr]
		}
	}
	return altered, seen
}

// sample picks bytes of programs at random, and what to change them to.
func (m *mutants) sample(t testing.TB, n int, visit func(fde int, at uint64, b byte)) {
	random := rand.New(rand.NewPCG(1, 2))
	var at []uint64
	var owner []int
	for k := range m.l.fdes {
		f := &m.l.fdes[k]
		if m.owner[k] == nil || len(f.Program()) == 0 {
			continue
		}
		from := offsetOf(m.data, f)
		program := bytes.TrimRight(f.Program(), "\x00")
		for j := range program {
			at = append(at, from+uint64(j))
			owner = append(owner, k)
		}
	}
	if len(at) == 0 {
		t.Fatal("no programs")
	}
	for range n {
		k := random.IntN(len(at))
		visit(owner[k], at[k], m.data[at[k]]^byte(1+random.IntN(255)))
	}
}

// offsetOf returns where an FDE's program begins in the section: it ends the record.
func offsetOf(data []byte, f *cfi.FDE) uint64 {
	length := uint64(data[f.Offset]) | uint64(data[f.Offset+1])<<8 | uint64(data[f.Offset+2])<<16 | uint64(data[f.Offset+3])<<24
	return f.Offset + 4 + length - uint64(len(f.Program()))
}

// TestMutationsAreCaught changes single bytes of the programs of real libraries and says how many of those changes that
// alter a row of an instruction are found. CALLREEL_MUTANTS names more files, separated by colons, and has each change
// listed that is missed.
func TestMutationsAreCaught(t *testing.T) {
	paths := []string{library(t, "libm.so.6"), library(t, "libgcc_s.so.1"), library(t, "libstdc++.so.6")}
	more := os.Getenv("CALLREEL_MUTANTS")
	if more != "" {
		paths = append(paths, strings.Split(more, ":")...)
	}
	mutationsAreCaught(t, paths, more != "")
}

// mutationsAreCaught changes bytes of these files' programs. verbose has each change listed that is missed.
func mutationsAreCaught(t *testing.T, paths []string, verbose bool) {
	const tries = 1500
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			m := newMutants(t, path)
			m.sample(t, 20, func(fde int, at uint64, _ byte) {
				if got, _ := m.try(t, fde, at, m.data[at]); got != sameRows {
					t.Errorf("FDE %#x: no change gives %d", m.l.fdes[fde].Start, got)
				}
			})
			counts := map[outcome]int{}
			classes := map[string]int{}
			m.sample(t, tries, func(fde int, at uint64, b byte) {
				got, rows := m.try(t, fde, at, b)
				counts[got]++
				if got == missed {
					classes[m.classOf(fde, rows)]++
					if verbose {
						t.Logf("missed: FDE %#x, byte %#x -> %#x: %s", m.l.fdes[fde].Start, m.data[at], b, m.classOf(fde, rows))
					}
				}
			})
			rate := float64(counts[caught]) / float64(counts[caught]+counts[missed])
			t.Logf("%d changes: %d alter no row, %d the row of no instruction, %d are caught, %d missed: %.1f %% of those that matter", tries,
				counts[sameRows], counts[unseen], counts[caught], counts[missed], 100*rate)
			var list []string
			for class, n := range classes {
				list = append(list, fmt.Sprintf("%4d %s", n, class))
			}
			sort.Sort(sort.Reverse(sort.StringSlice(list)))
			t.Logf("missed, by how their rows differ:\n%s", strings.Join(list, "\n"))
			if rate < 0.97 {
				t.Errorf("only %.1f %% are caught", 100*rate)
			}
		})
	}
}

// classOf says how the rows differ.
func (m *mutants) classOf(fde int, rows []row) string {
	f := m.owner[fde]
	k := slices.IndexFunc(f.parts, func(p part) bool { return p.fde == fde })
	was, is := f.parts[k], f.parts[k]
	was.rows, is.rows = m.rows[fde], rows
	kinds := map[string]bool{}
	m.p.sweepAll(&was, func(addr uint64) {
		x, y := was.rowAt(addr), is.rowAt(addr)
		switch {
		case x == nil || y == nil:
			kinds["no row"] = true
			return
		case !sameRule(&x.CFA, &y.CFA):
			kinds["CFA"] = true
		case x.RASigned != y.RASigned:
			kinds["signing"] = true
		}
		for _, r := range x.Regs {
			if o := y.Reg(r.Reg); !sameRule(&r.Rule, &o) {
				kinds[fmt.Sprintf("rule lost or changed to kind %d", o.Kind)] = true
			}
		}
		for _, r := range y.Regs {
			if o := x.Reg(r.Reg); o.Kind == cfi.Unspecified {
				if _, ok := m.p.general(r.Reg); ok {
					kinds[fmt.Sprintf("rule of kind %d made up for %s", r.Kind, m.p.names(r.Reg))] = true
				} else {
					kinds[fmt.Sprintf("rule of kind %d made up for another register", r.Kind)] = true
				}
			}
		}
	})
	var list []string
	for k := range kinds {
		list = append(list, k)
	}
	sort.Strings(list)
	return strings.Join(list, ", ")
}

// library returns the path of a shared library that gcc would link.
func library(t testing.TB, name string) string {
	t.Helper()
	realtest.Need(t, realtest.GCC)
	out, err := exec.Command("gcc", "-print-file-name="+name).Output()
	if err != nil {
		t.Fatal(err)
	}
	path := strings.TrimSpace(string(out))
	if _, err := os.Stat(path); err != nil {
		t.Skipf("needs %s: %v", name, err)
	}
	return path
}

// sweepAll calls yield with the start of each instruction in a part, decoded one after the other.
func (p *processor) sweepAll(at *part, yield func(addr uint64)) {
	var in inst
	for off := uint64(0); off < uint64(len(at.code)); {
		if !p.decode(&in, at.code[off:], at.start+off) {
			off += p.minLen
			continue
		}
		yield(at.start + off)
		off += uint64(in.size)
	}
}
