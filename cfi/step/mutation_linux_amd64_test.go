package step

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/cfi/lint"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

// mutantSource is a program whose functions do what compilers and people do to stacks, each called once or twice.
const mutantSource = `
#include <alloca.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#define FAR __attribute__((noinline, noclone))
FAR int ext(void *p, ...) { __asm__ volatile("" :: "r"(p) : "memory"); return 3; }
FAR int leaf(int a, int b) { return a * b + 3; }
FAR int calls(int a, int b, int c) { int r = ext(&a, b); return ext(&r, c) + a * b; }
FAR int many(int a, int b, int c, int d, int e, int f, int g, int h) {
	int x[8] = {a, b, c, d, e, f, g, h};
	for (int i = 0; i < 8; i++) x[i] = ext(x, i, a, b, c, d, e, f, g, h);
	return x[a & 7] + b;
}
FAR int alloc(int n) { char *p = alloca(n); ext(p, n); return p[n / 2]; }
FAR int vla(int n, int m) { int s = 0; for (int i = 0; i < n; i++) { int x[i + m]; x[i] = 1; ext(x, i); s += x[i]; } return s; }
FAR int aligned(int n) { _Alignas(64) char b[128] = {0}; ext(b, n); return b[n]; }
FAR int large(int n) { char b[20000]; ext(b, n); b[n] = 1; return b[n]; }
FAR int variable(int n, ...) { va_list ap; va_start(ap, n); int s = 0; while (n--) s += va_arg(ap, int); va_end(ap); ext(&s); return s; }
FAR int table(int k, int a) {
	switch (k) {
	case 0: return ext(&a, 1);
	case 1: ext(&a, 2); return 7;
	case 2: return a / 3;
	case 3: a = ext(&k, 4); break;
	case 4: a += ext(&k, 5, 6, 7, 8, 9, 10, 11); break;
	case 5: return ext(&k) + ext(&a);
	case 6: a ^= 77; break;
	default: a = 5;
	}
	return a + ext(&k);
}
FAR int wrapped(int a, int b) { if (a) return b; int x = ext(&b, a), y = ext(&x, b); if (x > y) abort(); return ext(&y, x) * x + y; }
FAR double floats(double a, double b, int n) { double s = 0; for (int i = 0; i < n; i++) s += a * ext(&s, i) + b; return s; }
FAR int jumps(int n) { jmp_buf b; volatile int v = n; if (setjmp(b)) return v; ext(b, v); if (n) longjmp(b, 1); return ext(&n); }
FAR int recursive(int n) { return n ? recursive(n - 1) + ext(&n) : 0; }
int (*volatile pointer)(int, int) = leaf;
FAR int tail(int a, int b) { ext(&a); return pointer(a, b); }
FAR int early(int a) { if (a < 0) return -1; int x[4]; ext(x); if (ext(x + 1) != 3) return x[1] = 2; return ext(x, a) + a; }
#ifdef ASSEMBLY
int by_rbx(int), pushes(int), expression(int);
#endif
int main(void) {
	int s = leaf(1, 2) + calls(1, 2, 3) + many(1, 2, 3, 4, 5, 6, 7, 8) + alloc(40) + vla(2, 3) + aligned(3) + large(7) + variable(3, 1, 2, 3);
	for (int k = -1; k < 8; k++) s += table(k, 9);
	s += wrapped(0, 1) + wrapped(1, 0) + floats(1, 2, 2) + jumps(0) + jumps(1) + recursive(2) + tail(1, 2) + early(-1) + early(1);
#ifdef ASSEMBLY
	s += by_rbx(1) + pushes(2) + expression(3);
#endif
	return s == 12345678;
}
`

// mutantAssembly has rows that no compiler makes.
const mutantAssembly = `
	.text
	.globl by_rbx, pushes, expression
	.type by_rbx, @function
by_rbx:	.cfi_startproc
	push %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -16
	mov %rsp, %rbx
	.cfi_def_cfa_register %rbx
	sub $72, %rsp
	and $-64, %rsp
	movl $1, (%rsp)
	lea 8(%rbx), %rax
	mov %rbx, %rsp
	.cfi_def_cfa_register %rsp
	pop %rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret
	.cfi_endproc
	.size by_rbx, .-by_rbx
	.type pushes, @function
pushes:	.cfi_startproc
	mov %rbp, -8(%rsp)
	.cfi_offset %rbp, -16
	mov %r12, %r11
	.cfi_register %r12, %r11
	mov $7, %r12d
	mov $8, %ebp
	sub $24, %rsp
	.cfi_adjust_cfa_offset 24
	xchg %rax, (%rsp)
	.cfi_remember_state
	test %edi, %edi
	je 1f
	mov 16(%rsp), %rbp
	.cfi_restore %rbp
	mov %r11, %r12
	.cfi_restore %r12
	lea 24(%rsp), %rsp
	.cfi_adjust_cfa_offset -24
	ret
1:	.cfi_restore_state
	ud2
	.cfi_endproc
	.size pushes, .-pushes
	.type expression, @function
expression: .cfi_startproc
	mov %rsp, %rax
	.cfi_def_cfa_register %rax
	push %rbx
	push %rbp
	.cfi_offset %rbx, -16
	.cfi_offset %rbp, -24
	sub $40, %rsp
	and $-32, %rsp
	mov %rax, 24(%rsp)
	.cfi_escape 0x0f, 6, 0x77, 24, 0x06, 0x23, 8, 0x96
	mov $5, %ebx
	mov $6, %ebp
	xor %eax, %eax
	mov 24(%rsp), %rcx
	.cfi_def_cfa %rcx, 8
	mov -16(%rcx), %rbp
	.cfi_restore %rbp
	mov -8(%rcx), %rbx
	.cfi_restore %rbx
	lea (%rcx), %rsp
	.cfi_def_cfa_register %rsp
	ret
	.cfi_endproc
	.size expression, .-expression
	.section .note.GNU-stack,"",@progbits
`

// mutantFunctions are those of mutantSource and mutantAssembly.
var mutantFunctions = strings.Fields(`ext leaf calls many alloc vla aligned large variable table wrapped floats jumps recursive tail early main
	by_rbx pushes expression`)

// mutants changes single bytes of a program's file.
type mutants struct {
	file    []byte
	frame   *object.Section
	header  *object.Section
	rows    string   // what the tables say without a change
	starts  []uint64 // of the functions of the source
	lines   map[string]bool
	path    string // where changed files are put
	program string
}

func newMutants(t *testing.T, program string) *mutants {
	t.Helper()
	m := &mutants{program: program, path: filepath.Join(t.TempDir(), "mutant"), lines: map[string]bool{}}
	var err error
	if m.file, err = os.ReadFile(program); err != nil {
		t.Fatal(err)
	}
	im, err := object.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { im.Close() })
	if m.frame, m.header = im.Section(".eh_frame"), im.Section(".eh_frame_hdr"); m.frame == nil || m.header == nil {
		t.Fatal("no .eh_frame or no .eh_frame_hdr")
	}
	for _, name := range mutantFunctions {
		if symbols, err := im.Symbols(); err == nil && slices.ContainsFunc(symbols, func(s object.Symbol) bool { return s.Name == name }) {
			m.starts = append(m.starts, addressOf(t, program, name))
		}
	}
	slices.Sort(m.starts)
	m.rows = rowsOf(im)
	found, err := lint.Check(im)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found.Findings {
		if f.Kind != lint.NoCFI {
			t.Errorf("without a change: %+v", f)
		}
		m.lines[fmt.Sprint(f)] = true
	}
	return m
}

// rowsOf writes all that the table of .eh_frame says.
func rowsOf(im *object.Image) string {
	data, addr, err := im.EHFrame()
	if err != nil {
		return err.Error()
	}
	table, err := cfi.ParseEHFrame(data, addr, cfi.Options{})
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	var machine cfi.Machine
	regs, _ := cfi.RegistersOf(im.Arch)
	list := table.FDEs()
	for k := range list {
		f := &list[k]
		last := "" // equal rows beside each other are one
		err := machine.Rows(f, func(r *cfi.Row) bool {
			if text := fmt.Sprint(r.Format(regs.Name), " ", r.ArgsSize); text != last {
				fmt.Fprintf(&b, "%#x %s\n", r.Start, text)
				last = text
			}
			return true
		})
		fmt.Fprintf(&b, "%#x %#x %v %#x %#x %v\n", f.Start, f.End, err, f.LSDA, f.CIE.Personality, f.CIE.SignalFrame)
	}
	for _, d := range table.Damage() {
		fmt.Fprintln(&b, "damage", d.Offset)
	}
	return b.String()
}

// write puts a changed file in its place; the one before may still be mapped.
func (m *mutants) write(t *testing.T, at uint64, b byte) {
	t.Helper()
	changed := bytes.Clone(m.file)
	changed[at] = b
	os.Remove(m.path)
	if err := os.WriteFile(m.path, changed, 0o755); err != nil {
		t.Fatal(err)
	}
}

// alters says whether the changed file says something else of any code, and whether lint sees it.
func (m *mutants) lint(t *testing.T) (alters, seen bool) {
	t.Helper()
	im, err := object.Open(m.path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	alters = rowsOf(im) != m.rows
	found, err := lint.Check(im)
	if err != nil {
		return alters, true
	}
	seen = slices.ContainsFunc(found.Findings, func(f lint.Finding) bool { return !m.lines[fmt.Sprint(f)] })
	return alters, seen
}

// step says whether step finds something in the changed file.
func (m *mutants) step(t *testing.T) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := Run(ctx, Options{
		Command: []string{m.path}, Module: func(name string) bool { return name == filepath.Base(m.path) },
		Function: func(name string) bool { return slices.Contains(mutantFunctions, name) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Calls == 0 && errors.Join(r.Problems...) == nil {
		t.Fatal("nothing was followed")
	}
	return len(r.Findings) > 0 || len(r.Problems) > 0
}

// of names the place of a byte by the record that it is in.
func (m *mutants) of(at uint64) string {
	if at >= m.header.Off && at < m.header.Off+m.header.FileSize {
		return fmt.Sprintf(".eh_frame_hdr+%#x", at-m.header.Off)
	}
	frame := m.file[m.frame.Off : m.frame.Off+m.frame.FileSize]
	offset := at - m.frame.Off
	for from := uint64(0); from+8 <= uint64(len(frame)); {
		word := func(at uint64) uint64 {
			return uint64(frame[at]) | uint64(frame[at+1])<<8 | uint64(frame[at+2])<<16 | uint64(frame[at+3])<<24
		}
		next := from + 4 + word(from)
		if offset < next {
			if word(from+4) == 0 {
				return fmt.Sprintf("CIE+%#x", offset-from)
			}
			return fmt.Sprintf("FDE %#x+%#x", from, offset-from)
		}
		from = next
	}
	return "the end"
}

// TestMutationsAreCaughtByLintOrStep changes single bytes anywhere in .eh_frame and .eh_frame_hdr of programs, and says how
// many of those changes that alter a row are found by lint, and how many of the others by step. CALLREEL_MUTANTS is how many
// changes are made to each program.
func TestMutationsAreCaughtByLintOrStep(t *testing.T) {
	tries := 250
	if n, err := strconv.Atoi(os.Getenv("CALLREEL_MUTANTS")); err == nil {
		tries = n
	}
	var byLint, byStep, all int
	for _, line := range []string{"gcc -O2 -DASSEMBLY", "gcc -O0", "gcc -O2 -fno-omit-frame-pointer", "clang-19 -O2", "clang-19 -O0"} {
		t.Run(line, func(t *testing.T) {
			realtest.Need(t, realtest.GCC, realtest.LivePtrace, realtest.Capability(strings.Fields(line)[0]))
			m := newMutants(t, compileMutant(t, strings.Fields(line)))
			random := rand.New(rand.NewPCG(3, uint64(len(line))))
			var lints, steps, altering int
			for range tries {
				section := m.frame
				if random.IntN(12) == 0 {
					section = m.header
				}
				at := section.Off + random.Uint64N(section.FileSize)
				b := m.file[at] ^ byte(1+random.IntN(255))
				m.write(t, at, b)
				alters, seen := m.lint(t)
				if section == m.frame && !alters {
					continue
				}
				altering++
				if seen {
					lints++
				} else if m.step(t) {
					steps++
				} else {
					t.Logf("missed: %s: %#x -> %#x", m.of(at), m.file[at], b)
				}
			}
			t.Logf("of %d changes %d alter what is said: lint finds %d, step %d of the others, %.2f %% together", tries, altering, lints, steps,
				100*float64(lints+steps)/float64(altering))
			byLint, byStep, all = byLint+lints, byStep+steps, all+altering
		})
	}
	if all == 0 {
		return
	}
	share := float64(byLint+byStep) / float64(all)
	t.Logf("of %d changes lint finds %d (%.2f %%), step %d of the others: %.2f %% together", all, byLint, 100*float64(byLint)/float64(all), byStep, 100*share)
	if share < 0.99 {
		t.Errorf("only %.2f %% are caught", 100*share)
	}
}

// compileMutant makes the program with a compiler and its flags.
func compileMutant(t *testing.T, line []string) string {
	t.Helper()
	dir := t.TempDir()
	out := filepath.Join(dir, "program")
	args := append(slices.Clone(line[1:]), "-w", "-g0", "-o", out)
	for name, text := range map[string]string{"main.c": mutantSource, "rows.S": mutantAssembly} {
		if name == "rows.S" && !slices.Contains(line, "-DASSEMBLY") {
			continue
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	if said, err := exec.Command(line[0], args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", line[0], err, said)
	}
	return out
}
