package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// bareCxx has landing pads and needs no header, so that it compiles for a processor whose libraries aren't there.
const bareCxx = `
extern "C" int ext(void *, ...);
struct guard { int v; ~guard(); };
struct failure { int code; };
int throwing(int n) { guard g{n}; if (ext(&g, n)) throw failure{n}; return g.v; }
int catching(int n) {
	guard g{n};
	try { return throwing(n) + ext(&n); }
	catch (const failure &e) { guard h{3}; return ext(&h, e.code); }
	catch (...) { ext(&g); throw; }
}
int (*volatile fp)(int);
int nested(int n) { try { try { fp(n); } catch (int k) { guard g{k}; return fp(k); } } catch (long) { return 9; } return n; }
double kept(double a, double b, int n) { guard g{n}; double s = a; for (int i = 0; i < n; i++) s = s * b + fp(i) * a; return s + b; }
`

// armC is cSource without the headers of a C library.
func armC() string {
	return strings.NewReplacer("#include <setjmp.h>", "typedef int jmp_buf[96]; int setjmp(jmp_buf) __attribute__((returns_twice));",
		"#include <alloca.h>", "#define alloca __builtin_alloca").Replace(cSource)
}

// buildARM64 is build for arm64.
func buildARM64(t testing.TB, c realtest.Capability, source, suffix string, flags ...string) string {
	t.Helper()
	if c == realtest.Clang {
		flags = append([]string{"--target=aarch64-linux-gnu", "-fuse-ld=lld-19", "-Wno-unused-command-line-argument"}, flags...)
	}
	return build(t, c, source, suffix, flags...)
}

// armFlags are the ways in which compilers treat the stack differently.
var armFlags = []string{
	"-O0", "-O1", "-O2", "-O3", "-Os", "-O2 -fomit-frame-pointer", "-O2 -mbranch-protection=standard", "-O2 -mbranch-protection=pac-ret+leaf",
	"-O2 -mbranch-protection=pac-ret+leaf+b-key", "-O2 -march=armv8.3-a -mbranch-protection=standard", "-O2 -fstack-clash-protection",
	"-O2 -fno-asynchronous-unwind-tables -funwind-tables", "-O2 -fstack-protector-all", "-O2 -Wl,--strip-all", "-O3 -march=armv8.2-a+sve",
}

func TestARM64CompilersOutputHasNoFindings(t *testing.T) {
	for _, c := range []realtest.Capability{realtest.GCCARM64, realtest.Clang} {
		for _, flags := range armFlags {
			t.Run(string(c)+" "+flags, func(t *testing.T) {
				realtest.Need(t, c)
				sources := map[string]string{".c": armC()}
				if _, err := realtest.GXXARM64.Find(); err == nil || c == realtest.Clang {
					sources[".cc"] = bareCxx
				}
				for suffix, source := range sources {
					r := checkFile(t, buildARM64(t, c, source, suffix, strings.Fields(flags)...))
					if !r.CodeFollowed || r.FDEs < 4 {
						t.Errorf("%s: %+v", suffix, r)
					}
					for _, f := range r.Findings {
						t.Errorf("%s: %+v", suffix, f)
					}
				}
			})
		}
	}
}

// TestARM64LibrariesHaveNoFalseFindings lints files that CALLREEL_ARM64_FILES names, separated by colons, such as those of Debian's
// packages, and lists what it finds in them; without it, the C library that the cross compiler has.
func TestARM64LibrariesHaveNoFalseFindings(t *testing.T) {
	paths := strings.Split(os.Getenv("CALLREEL_ARM64_FILES"), ":")
	if paths[0] == "" {
		realtest.Need(t, realtest.GCCARM64)
		paths = []string{"/usr/aarch64-linux-gnu/lib/libc.so.6", "/usr/aarch64-linux-gnu/lib/libm.so.6", "/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1"}
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			if _, err := os.Stat(path); err != nil {
				t.Skip(err)
			}
			r := checkFile(t, path)
			kinds := map[Kind]int{}
			for _, f := range r.Findings {
				kinds[f.Kind]++
				// Errors of glibc's own: _dl_runtime_profile takes its frame off with an adjustment upwards, and the CIE of rawmemchr
				// says (2.36-8) that the return address is in x15 even before it is brought there.
				own := f.Kind == WrongCFA && f.Truth == "cfa=sp-16" || f.Kind == WrongRA && f.Says == "ra=x15" && f.Truth == "ra=same"
				if f.Kind != NoCFI && !own {
					t.Errorf("%s %#x %s: %s; %s; %s", f.Kind, f.Address, f.Function, f.Says, f.Truth, f.Directive)
				}
			}
			t.Logf("%d FDEs, synchronous %v: %v", r.FDEs, r.Synchronous, kinds)
		})
	}
}

func TestARM64SingleMistakesAreFound(t *testing.T) {
	const share = 0.97
	for _, c := range []realtest.Capability{realtest.GCCARM64, realtest.Clang} {
		for _, flags := range []string{"-O0", "-O2", "-O2 -fomit-frame-pointer", "-O2 -mbranch-protection=pac-ret+leaf"} {
			t.Run(string(c)+" "+flags, func(t *testing.T) {
				realtest.Need(t, c)
				atLeast(t, buildARM64(t, c, armC(), ".c", strings.Fields(flags)...), share)
			})
		}
	}
	for _, path := range filepath.SplitList(os.Getenv("CALLREEL_ARM64_FILES")) {
		t.Run(filepath.Base(path), func(t *testing.T) { atLeast(t, path, 0.95) })
	}
}

// TestARM64MutationsAreCaught is TestMutationsAreCaught with arm64's code.
func TestARM64MutationsAreCaught(t *testing.T) {
	var paths []string
	for _, c := range []realtest.Capability{realtest.GCCARM64, realtest.Clang} {
		if _, err := c.Find(); err == nil {
			paths = append(paths, buildARM64(t, c, armC(), ".c", "-O2", "-mbranch-protection=standard"))
		}
	}
	if len(paths) == 0 {
		realtest.Need(t, realtest.Clang)
	}
	paths = append(paths, filepath.SplitList(os.Getenv("CALLREEL_ARM64_FILES"))...)
	mutationsAreCaught(t, paths, os.Getenv("CALLREEL_MUTANTS") != "")
}

var armErrors = []deliberate{
	{"frame_without_adjustment", `
	stp x29, x30, [sp, #-32]!
bad:	mov x29, sp
	ldp x29, x30, [sp], #32
	ret`,
		"cfa: cfa=sp+0; cfa=sp+32; .cfi_adjust_cfa_offset 32"},
	{"adjustment_of_the_wrong_size", `
	sub sp, sp, #48
	.cfi_def_cfa_offset 40
bad:	nop
	add sp, sp, #48
	.cfi_def_cfa_offset 0
	ret`,
		"cfa: cfa=sp+40; cfa=sp+48; .cfi_def_cfa_offset 48"},
	{"epilogue_left_out", `
	stp x29, x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset x29, -16
	.cfi_offset x30, -8
	bl ext
	ldp x29, x30, [sp], #16
bad:	ret`,
		"epilogue: cfa=sp+16; cfa=sp+0; .cfi_adjust_cfa_offset -16"},
	{"link_register_without_a_rule", `
	str x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	bl ext
bad:	ldr x30, [sp], #16
	.cfi_def_cfa_offset 0
	ret`,
		"return-address: ra=same; ra=[cfa-16]; .cfi_offset x30, -16"},
	{"link_register_lost", `
	mov x30, x0
bad:	br x1`,
		"return-address: ra=same; ra is lost; .cfi_undefined x30"},
	{"kept_in_a_register", `
	mov x9, x30
	mov x30, x0
bad:	mov x30, x9
	ret`,
		"return-address: ra=same; ra=x9; .cfi_register x30, x9"},
	{"clobbered_without_a_rule", `
	str x19, [sp, #-16]!
	.cfi_def_cfa_offset 16
	mov x19, x0
bad:	mov x0, x19
	ldr x19, [sp], #16
	.cfi_def_cfa_offset 0
	ret`,
		"register: x19=same; x19=[cfa-16]; .cfi_offset x19, -16"},
	{"pair_the_wrong_way_round", `
	stp x19, x20, [sp, #-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset x20, -16
	.cfi_offset x19, -8
bad:	mov x19, x0
	mov x20, x1
	ldp x19, x20, [sp], #16
	.cfi_restore x20
	.cfi_restore x19
	.cfi_def_cfa_offset 0
	ret`,
		"register: x19=[cfa-8]; x19=[cfa-16]; .cfi_offset x19, -16\nregister: x20=[cfa-16]; x20=[cfa-8]; .cfi_offset x20, -8"},
	{"vector_register_without_a_rule", `
	str d8, [sp, #-16]!
	.cfi_def_cfa_offset 16
	fmov d8, d0
bad:	fadd d0, d8, d0
	ldr d8, [sp], #16
	.cfi_def_cfa_offset 0
	ret`,
		"register: v8=same; v8=[cfa-16]; .cfi_offset d8, -16"},
	{"vector_pair_at_another_place", `
	stp d8, d9, [sp, #-32]!
	.cfi_def_cfa_offset 32
	.cfi_offset 72, -32
	.cfi_offset 73, -16
bad:	movi d8, #0
	fmov d9, d8
	ldp d8, d9, [sp], #32
	.cfi_restore 72
	.cfi_restore 73
	.cfi_def_cfa_offset 0
	ret`,
		"register: v9=[cfa-16]; v9=[cfa-24]; .cfi_offset d9, -24"},
	{"frame_register_not_set_up", `
	stp x29, x30, [sp, #-16]!
	.cfi_def_cfa x29, 16
	.cfi_offset x29, -16
	.cfi_offset x30, -8
bad:	mov x29, sp
	bl ext
	ldp x29, x30, [sp], #16
	.cfi_def_cfa sp, 0
	.cfi_restore x29
	.cfi_restore x30
	ret`,
		"cfa: cfa=x29+16; cfa=sp+16; .cfi_def_cfa sp, 16"},
	{"signed_and_not_said", `
	paciasp
bad:	stp x29, x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset x29, -16
	.cfi_offset x30, -8
	bl ext
	ldp x29, x30, [sp], #16
	.cfi_def_cfa_offset 0
	.cfi_restore x29
	.cfi_restore x30
	retaa`,
		"return-address: ra is not signed; ra is signed with the A key; .cfi_negate_ra_state"},
	{"said_and_not_signed", `
	.cfi_negate_ra_state
bad:	nop
	ret`,
		"return-address: ra is signed with the A key; ra is not signed; .cfi_negate_ra_state"},
	{"signed_with_the_other_key", `
	pacibsp
	.cfi_negate_ra_state
bad:	autibsp
	.cfi_negate_ra_state
	ret`,
		"return-address: ra is signed with the A key; ra is signed with the B key; .cfi_b_key_frame"},
	{"signed_within_the_frame", `
	sub sp, sp, #16
	.cfi_def_cfa_offset 16
	paciasp
	.cfi_negate_ra_state
bad:	autiasp
	.cfi_negate_ra_state
	add sp, sp, #16
	.cfi_def_cfa_offset 0
	ret`,
		"return-address: ra is signed with the A key; ra is signed with a stack pointer that is not the CFA; "},
	{"authenticated_and_not_said", `
	paciasp
	.cfi_negate_ra_state
	nop
	autiasp
bad:	mov x0, x1
	cbz x0, 1f
	mov x0, #3
1:	ret`,
		"return-address: ra is signed with the A key; ra is not signed; .cfi_negate_ra_state"},
	{"tail_jump_with_a_frame", `
	str x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset x30, -16
	bl ext
	ldr x30, [sp], #16
bad:	b ext`,
		"epilogue: cfa=sp+16; cfa=sp+0; .cfi_adjust_cfa_offset -16"},
	{"large_frame_off_by_a_page", `
	mov x16, #0x2340
	movk x16, #0x1, lsl #16
	sub sp, sp, x16
	.cfi_def_cfa_offset 0x11340
bad:	nop
	add sp, sp, x16
	.cfi_def_cfa_offset 0
	ret`,
		"cfa: cfa=sp+70464; cfa=sp+74560; .cfi_def_cfa_offset 74560"},
	{"aligned_frame_by_the_stack_pointer", `
	stp x29, x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset x29, -16
	.cfi_offset x30, -8
	mov x29, sp
	sub x9, sp, #112
	and sp, x9, #0xffffffffffffffc0
	.cfi_def_cfa_offset 128
bad:	bl ext
	mov sp, x29
	.cfi_def_cfa_offset 16
	ldp x29, x30, [sp], #16
	.cfi_def_cfa_offset 0
	.cfi_restore x29
	.cfi_restore x30
	ret`,
		"cfa: cfa=sp+128; cfa=x29+16; .cfi_def_cfa x29, 16"},
	{"case_of_a_table", `
	stp x29, x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset x29, -16
	.cfi_offset x30, -8
	cmp w0, #2
	b.hi 3f
	adrp x1, 9f
	add x1, x1, :lo12:9f
	ldrb w1, [x1, w0, uxtw]
	adr x2, 1f
	add x1, x2, w1, sxtb #2
	br x1
1:	bl ext
	b 3f
2:	sub sp, sp, #16
bad:	nop
	add sp, sp, #16
3:	ldp x29, x30, [sp], #16
	.cfi_def_cfa_offset 0
	.cfi_restore x29
	.cfi_restore x30
	ret
	.section .rodata
9:	.byte 0, (2b - 1b) / 4, (3b - 1b) / 4
	.text`,
		"cfa: cfa=sp+16; cfa=sp+32; .cfi_adjust_cfa_offset 16"},
	{"cfa_by_a_register_that_calls_change", `
	str x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset x30, -16
	mov x10, sp
	.cfi_def_cfa x10, 16
	blr x1
bad:	ldr x30, [sp], #16
	.cfi_def_cfa sp, 0
	.cfi_restore x30
	ret`,
		"cfa: cfa=x10+16; cfa=sp+16; .cfi_def_cfa sp, 16"},
}

// armUnusual is right, though compilers make hardly any of it.
var armUnusual = []deliberate{
	{"signed_leaf", `
	.cfi_b_key_frame
	bti c
	pacibsp
	.cfi_negate_ra_state
	add x0, x0, x1
	autibsp
	.cfi_negate_ra_state
	ret`, ""},
	{"tail_call_by_register", `
	bti c
	stp x29, x30, [sp, #-32]!
	.cfi_def_cfa_offset 32
	.cfi_offset x29, -32
	.cfi_offset x30, -24
	str x19, [sp, #16]
	.cfi_offset x19, -16
	mov x19, x0
	bl ext
	mov x16, x0
	ldr x19, [sp, #16]
	ldp x29, x30, [sp], #32
	.cfi_restore x30
	.cfi_restore x29
	.cfi_restore x19
	.cfi_def_cfa_offset 0
	br x16`, ""},
	{"probes_each_page", `
	sub x9, sp, #0x10, lsl #12
	.cfi_def_cfa x9, 65536
1:	sub sp, sp, #1, lsl #12
	str xzr, [sp]
	cmp sp, x9
	b.ne 1b
	.cfi_def_cfa_register sp
	nop
	add sp, sp, #0x10, lsl #12
	.cfi_def_cfa_offset 0
	ret`, ""},
	{"quad_registers", `
	stp q8, q9, [sp, #-32]!
	.cfi_def_cfa_offset 32
	.cfi_offset 72, -32
	.cfi_offset 73, -16
	movi v8.4s, #0
	movi v9.4s, #0
	ldp q8, q9, [sp], #32
	.cfi_restore 72
	.cfi_restore 73
	.cfi_def_cfa_offset 0
	ret`, ""},
	{"strips_its_own", `
	paciasp
	.cfi_negate_ra_state
	mov x1, x30
	xpaci x1
	mov x0, x1
	autiasp
	.cfi_negate_ra_state
	ret`, ""},
	{"switches_stacks", `
	mov x9, sp
	str x9, [x0]
	ldr x9, [x1]
	mov sp, x9
	ldp x29, x30, [sp], #16
	ret`, ""},
	{"data_between", `
	ldr x0, 1f
	adr x1, 2f
	ldr w1, [x1]
	ret
1:	.quad 0x123456789abcdef0
2:	.word 0xd10083ff
	.word 0xd65f03c0`, ""},
}

// assembleARM64 is assemble for arm64.
func assembleARM64(t testing.TB, functions []deliberate, flags ...string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("\t.arch armv8.5-a\n\t.text\n\t.globl ext\n\t.hidden ext\n\t.type ext, %function\next:\n\t.cfi_startproc\n\tret\n\t.cfi_endproc\n\t.size ext, .-ext\n")
	for _, d := range functions {
		body := strings.ReplaceAll(d.body, "bad:", "bad_"+d.name+":")
		fmt.Fprintf(&b, "\t.p2align 4\n\t.globl %[1]s\n\t.type %[1]s, %%function\n%[1]s:\n\t.cfi_startproc%[2]s\n\t.cfi_endproc\n\t.size %[1]s, .-%[1]s\n", d.name, body)
	}
	return buildARM64(t, realtest.Clang, b.String(), ".S", flags...)
}

func TestARM64DeliberateErrorsAreFound(t *testing.T) {
	realtest.Need(t, realtest.Clang)
	path := assembleARM64(t, armErrors)
	at := labels(t, path)
	found := map[string][]Finding{}
	for _, f := range checkFile(t, path).Findings {
		found[f.Function] = append(found[f.Function], f)
	}
	for _, d := range armErrors {
		var got []string
		for _, f := range found[d.name] {
			got = append(got, fmt.Sprintf("%s: %s; %s; %s", f.Kind, f.Says, f.Truth, f.Directive))
		}
		want := strings.Split(d.want, "\n")
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: found\n\t%s\nwant\n\t%s", d.name, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
			continue
		}
		if first := found[d.name][0].Address; first != at["bad_"+d.name] {
			t.Errorf("%s: found at %#x, want %#x", d.name, first, at["bad_"+d.name])
		}
		delete(found, d.name)
	}
	for name, list := range found {
		if at[name] != 0 {
			continue // reported above
		}
		t.Errorf("%s: %+v", name, list)
	}
}

func TestARM64UnusualCodeHasNoFindings(t *testing.T) {
	realtest.Need(t, realtest.Clang)
	for _, f := range checkFile(t, assembleARM64(t, armUnusual)).Findings {
		t.Errorf("%+v", f)
	}
}
