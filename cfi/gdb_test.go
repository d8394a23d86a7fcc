package cfi

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// steppedSource calls through the PLT for the first time, has aligned frames and a variable one.
const steppedSource = `
#include <stdlib.h>
#include <alloca.h>
__attribute__((noinline)) int aligned(int n) { _Alignas(64) char b[128]; for (int i = 0; i < 4; i++) b[(i * n) & 127] = i; return b[n & 127]; }
__attribute__((noinline)) int variable(int n) { volatile char *p = alloca(n); p[0] = n; return p[0] + aligned(n); }
__attribute__((noinline)) int main_part(int n) { int x = variable(n) + abs(n); return x + atoi("12"); }
int main(int argc, char **argv) { return main_part(argc + 5) == 0 ? rand() : 0; }
`

var (
	gdbRegs  = regexp.MustCompile(`^R ([0-9a-f ]+)$`)
	gdbFrame = regexp.MustCompile(`^Stack level 0, frame at 0x([0-9a-f]+):`)
	gdbSaved = regexp.MustCompile(`\b(rbx|rbp|rip|r1[2-5]) at 0x([0-9a-f]+)`)
)

// TestRowsAppliedToARunAreWhatGDBSays steps a program and holds the CFA and the places of saved registers, as the
// evaluator gives them, against gdb's at every instruction of the program's own image, PLT included.
func TestRowsAppliedToARunAreWhatGDBSays(t *testing.T) {
	realtest.Need(t, realtest.AMD64, realtest.GCC, realtest.GDB, realtest.LivePtrace)
	dir := t.TempDir()
	source, prog, script := filepath.Join(dir, "x.c"), filepath.Join(dir, "x"), filepath.Join(dir, "script")
	const steps = 700
	order := []uint32{16, 7, 6, 0, 2, 1, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15} // pc, then by DWARF number
	words := strings.Join([]string{"$pc", "$rsp", "$rbp", "$rax", "$rcx", "$rdx", "$rbx", "$rsi", "$rdi", "$r8", "$r9", "$r10", "$r11", "$r12", "$r13", "$r14", "$r15"}, ",")
	commands := "set pagination off\nset disable-randomization on\nbreak main\nrun\nset $n = 0\nwhile $n < " + strconv.Itoa(steps) +
		"\nprintf \"R" + strings.Repeat(" %lx", len(order)) + "\\n\"," + words + "\ninfo frame\nstepi\nset $n = $n + 1\nend\nkill\n"
	for path, text := range map[string]string{source: steppedSource, script: commands} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	run(t, realtest.GCC, "-O2", "-no-pie", "-fno-builtin", "-Wl,-z,lazy", "-o", prog, source)
	gdb, err := realtest.GDB.Find()
	if err != nil {
		t.Fatal(err)
	}
	out, _ := exec.Command(gdb, "-nx", "-batch", "-x", script, prog).Output() // it fails when the program ends before the steps
	_, info := readImage(t, prog)
	s := stepping{info: info, regs: map[uint32]uint64{}, order: order}
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		s.line(t, lines.Text())
	}
	if s.frames < 40 || s.expressions == 0 {
		t.Errorf("only %d frames compared, %d with expressions, in\n%.2000s", s.frames, s.expressions, out)
	}
	t.Logf("%d frames, %d with expressions, %d saved registers", s.frames, s.expressions, s.saved)
}

// stepping is what gdb has said of the instruction at hand.
type stepping struct {
	info                       *Info
	order                      []uint32
	regs                       map[uint32]uint64
	machine                    Machine
	evaluator                  Evaluator
	row                        *Row
	cfa                        uint64
	frames, expressions, saved int
}

func (s *stepping) line(t *testing.T, text string) {
	t.Helper()
	if m := gdbRegs.FindStringSubmatch(text); m != nil {
		for k, word := range strings.Fields(m[1]) {
			s.regs[s.order[k]], _ = strconv.ParseUint(word, 16, 64)
		}
		row, _, err := s.info.RowAt(&s.machine, s.regs[16])
		if s.row = nil; err == nil {
			s.row = row
		}
		return
	}
	if s.row == nil {
		return
	}
	if m := gdbFrame.FindStringSubmatch(text); m != nil {
		want, _ := strconv.ParseUint(m[1], 16, 64)
		s.compareCFA(t, want)
	}
	for _, m := range gdbSaved.FindAllStringSubmatch(text, -1) {
		s.compareRegister(t, m[1], m[2])
	}
}

// compareCFA applies the row's rule. Memory is not at hand, so expressions that read it are left out.
func (s *stepping) compareCFA(t *testing.T, want uint64) {
	t.Helper()
	in := EvalInput{Reg: func(n uint32) (uint64, bool) { v, ok := s.regs[n]; return v, ok }, ByteOrder: binary.LittleEndian}
	switch rule := s.row.CFA; rule.Kind {
	case RegOffset:
		s.cfa = s.regs[uint32(rule.Reg)] + uint64(rule.Offset)
	case ValExpression:
		v, err := s.evaluator.Eval(rule.Expr, &in)
		if err != nil {
			s.row = nil
			return
		}
		s.cfa = v
		s.expressions++
	}
	s.frames++
	if s.cfa != want {
		t.Errorf("%#x: cfa=%s is %#x, gdb says %#x", s.regs[16], s.row.CFA.Format(s.info.Registers.Name), s.cfa, want)
	}
}

func (s *stepping) compareRegister(t *testing.T, name, at string) {
	t.Helper()
	n, ok := s.info.Registers.Number(name)
	if !ok {
		t.Fatalf("register %s is not known", name)
	}
	rule := s.row.Reg(n)
	if rule.Kind != Offset {
		return // gdb says where it is for expressions, too
	}
	s.saved++
	if got := fmt.Sprintf("%x", s.cfa+uint64(rule.Offset)); got != at {
		t.Errorf("%#x: %s is saved at %s, gdb says %s", s.regs[16], name, got, at)
	}
}
