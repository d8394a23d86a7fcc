package step

import (
	"strings"
	"testing"
)

// armCalls is a program of ordinary calls: recursion, a frame of variable size, callbacks, tail calls, atomics, calls out of the program.
const armCalls = `
#include <stdio.h>
#include <stdlib.h>
#define NOINLINE __attribute__((noinline, noclone))
NOINLINE int leaf(int x) { return x * 3 + 1; }
NOINLINE int fib(int n) { return n < 2 ? leaf(n) : fib(n - 1) + fib(n - 2); }
NOINLINE int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
NOINLINE int sorted(int n) {
	int v[n];
	for (int i = 0; i < n; i++) v[i] = i * 7919 % n;
	qsort(v, n, sizeof *v, compare);
	return v[n / 2];
}
NOINLINE double many(int a, int b, int c, int d, int e, int f, int g, int h, int i, double x) { return a + b + c + d + e + f + g + h + i + x; }
static int counter;
NOINLINE int counted(int n) { for (int i = 0; i < n; i++) __atomic_fetch_add(&counter, i, __ATOMIC_SEQ_CST); return leaf(counter); }
NOINLINE int last(int x) { __asm__(""); return x + 1; }
NOINLINE int first(int x) { __asm__(""); return last(x * 2); }
int main(void) {
	char text[100];
	snprintf(text, sizeof text, "%d %d %f %d %d", fib(7), sorted(20), many(1, 2, 3, 4, 5, 6, 7, 8, 9, 9.5), counted(4), first(3));
	puts(text);
	return 0;
}`

func TestRightRowsOfARM64GiveNoFinding(t *testing.T) {
	for _, flags := range []string{
		"-O0", "-O2", "-O2 -fomit-frame-pointer", "-Os", "-O3 -static", "-O2 -mbranch-protection=standard",
		"-O2 -mbranch-protection=pac-ret+leaf+b-key", "-O2 -mno-outline-atomics", "-O2 -march=armv8.3-a+lse -mbranch-protection=standard",
	} {
		t.Run(flags, func(t *testing.T) {
			path := build(t, map[string]string{"x.c": armCalls}, strings.Fields(flags)...)
			r := follow(t, Options{Command: []string{path}}, "main", "fib", "leaf", "sorted", "compare", "many", "counted", "first", "last")
			expectNothing(t, r, 50)
			if r.Functions < 8 || r.Threads != 1 {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestWrongRowsOfARM64AreFound(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"offset": {`
	stp x29, x30, [sp, #-32]!
	.cfi_def_cfa_offset 24
	.cfi_offset 29, -24
	.cfi_offset 30, -16
	mov x29, sp
	ldp x29, x30, [sp], #32
	.cfi_restore 30
	.cfi_restore 29
	.cfi_def_cfa_offset 0
	ret`, "cfa=sp+32"},
		"register": {`
	str x19, [sp, #-16]!
	.cfi_def_cfa_offset 16
	mov x19, #77
	ldr x19, [sp], #16
	.cfi_def_cfa_offset 0
	ret`, "x19=[cfa-16]"},
		"link register": {`
	str x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	bl other
	ldr x30, [sp], #16
	.cfi_def_cfa_offset 0
	ret`, "ra=[cfa-16]"},
		"signature": {`
	hint #25
	nop
	hint #29
	ret`, "ra is signed"},
	} {
		t.Run(name, func(t *testing.T) {
			path := build(t, map[string]string{
				"a.S": ".text\n.globl wrong\n.type wrong, %function\nwrong:\n.cfi_startproc" + c.body + "\n.cfi_endproc\n.size wrong, .-wrong\n" +
					".type other, %function\nother:\n.cfi_startproc\nret\n.cfi_endproc\n.size other, .-other\n.section .note.GNU-stack, \"\", %progbits\n",
				"x.c": "int wrong(void);\nint main(void) { return wrong() & 0; }",
			}, "-O1")
			r := follow(t, Options{Command: []string{path}}, "wrong")
			if len(r.Findings) != 1 || r.Findings[0].Truth != c.want || r.Findings[0].Function != "wrong" || r.ExitStatus.Code != 0 {
				t.Errorf("want %q; %+v, %+v", c.want, r.Findings, r.ExitStatus)
			}
		})
	}
}
