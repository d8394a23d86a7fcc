package plan

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// sitesOf tells a function's sites in a few words, in the order in which they were placed.
func sitesOf(im *Image, f *Function) string {
	if f.Tier == TierNone {
		return f.Reason.String()
	}
	var words []string
	for i := range f.Sites {
		s := &f.Sites[i]
		word := [...]string{"exit", "entry", "loop"}[s.Role]
		if s.Kind == SiteBranch {
			word += "-branch"
		}
		if s.Island != 0 {
			word += "-island"
		}
		exits := 0
		for _, m := range im.Moved(s, nil) {
			exits += count(m.Exit)
		}
		if s.Role != RoleExit && exits == 1 || s.Role == RoleExit && exits != 1 {
			word += fmt.Sprintf("(%d)", exits)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func TestSitesOfEveryShape(t *testing.T) {
	want := map[string]string{
		"shape_ret":               "entry(1)",
		"shape_padded":            "entry-island exit", // shape_into_middle jumps behind the first instruction
		"shape_rep_ret":           "entry(1)",
		"shape_bnd_ret":           "entry(1)",
		"shape_rets":              "entry(1) exit exit",
		"shape_target_ret":        "entry(1)",
		"shape_target_1":          "entry exit-island",
		"shape_target_2":          "entry exit-island",
		"shape_target_3":          "entry exit-island",
		"shape_target_4":          "entry exit",
		"shape_call_ret":          "exit-too-short",
		"tiny_ret_a":              "entry-too-short",
		"tiny_ret_b":              "entry-too-short",
		"tiny_move":               "entry-island(1)",
		"tiny_lea":                "entry(1)",
		"tiny_nop":                "entry-island(1)",
		"tiny_jmp":                "entry-island(1)",
		"tiny_last":               "entry(1)",
		"shape_tail_short":        "entry exit",
		"shape_tail_near":         "entry(1)",
		"shape_tail_memory":       "entry(1)",
		"shape_tail_register":     "entry exit",
		"shape_tail_notrack":      "entry exit",
		"shape_tail_jcc_short":    "entry", // with two exits in it
		"tiny_lea_near":           "entry(1)",
		"shape_tail_jcc_near":     "entry(1) exit",
		"shape_tail_only":         "entry(1)",
		"shape_push_ret":          "entry exit",
		"shape_retpoline":         "entry exit",
		"shape_falls":             "shared-body",
		"shape_fallen_into":       "entry(1)",
		"shape_into_middle":       "entry(1)",
		"shape_endbr":             "entry(1)",
		"shape_loop":              "entry exit",
		"shape_loop_jmp":          "entry exit",
		"shape_jrcxz_first":       "entry(1) exit",
		"shape_call_first":        "entry-branch exit",
		"shape_call_second":       "entry-branch exit",
		"shape_call_memory_first": "call-at-entry",
		"shape_rip_first":         "entry exit",
		"shape_rip_lea":           "entry exit",
		"shape_rip_immediate":     "entry exit",
		"shape_rip_vex":           "entry exit",
		"shape_jcc_first":         "entry(1) exit",
		"shape_target_in_entry":   "entry-island exit exit",
		"shape_jmp_first":         "entry-island exit",
		"shape_enter":             "entry exit",
		"shape_stack_argument":    "entry exit",
		"shape_red_zone":          "entry exit",
		"shape_jump_table":        "entry exit exit exit exit",
		"shape_cold":              "entry exit",
		"shape_cold_exit":         "entry exit exit",
		"shape_alias":             "entry(1)",
		"shape_far":               "entry(1)",
		"state_seer":              "entry exit",
		"state_seer_endbr":        "entry exit",
		"state_seer_tail":         "entry exit-branch",
	}
	out := filepath.Join(t.TempDir(), "state")
	realtest.Need(t, realtest.AMD64)
	gcc := realtest.Tool(t, realtest.GCC)
	args := []string{"-O2", "-no-pie", "-pthread", "-o", out, "../../../testdata/targets/" + "state.c", "../../../testdata/targets/" + "state.S", "../../../testdata/targets/" + "shapes.S"}
	if msg, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	im := openTestImage(t, out)
	plan := planImage(t, im)
	seen := 0
	for i := range plan {
		f := &plan[i]
		w, ok := want[f.Name]
		if !ok {
			continue
		}
		seen++
		if got := sitesOf(im, f); got != w {
			t.Errorf("%s: %s, want %s", f.Name, got, w)
		}
		if f.Name == "shape_alias" && !slices.Equal(f.Names(), []string{"shape_alias", "shape_aliased"}) {
			t.Errorf("shape_alias is called %q", f.Names())
		}
	}
	if seen != len(want) {
		t.Errorf("%d of %d shapes were found", seen, len(want))
	}
}

// What is written here in assembly would harm the program if it were probed: each must be refused, or its sites kept
// where they do no harm.
func TestWhatWouldHarmIsRefused(t *testing.T) {
	for _, c := range []struct{ name, code, want string }{
		{"data behind a jump", `
f:	leaq 1(%rdi), %rax
	jmp 1f
	.byte 0x48, 0x8d, 0x47, 0x01, 0xc3, 0xc3
1:	leaq 3(%rdi), %rax
	ret`, "unresolved-jump"},
		{"data that is read", `
f:	movq 1f(%rip), %rax
	ret
1:	.byte 0x48, 0x8d, 0x47, 0x01, 0xc3, 0x90, 0x90, 0x90`, "undecodable"},
		{"a jump to a computed place", `
f:	leaq 1f(%rip), %rax
	leaq (%rax,%rdi,4), %rax
	jmp *%rax
1:	leaq 1(%rdi), %rax
	ret
	leaq 2(%rdi), %rax
	ret`, "unresolved-jump"},
		{"a table that isn't found", `
f:	movq table_pointer(%rip), %rdx
	movslq (%rdx,%rdi,4), %rax
	addq %rdx, %rax
	jmp *%rax
1:	leaq 1(%rdi), %rax
	ret
	.data
table_pointer: .quad table
table:	.long 1b-table
	.text`, "unresolved-jump"},
		{"offsets from a label", `
f:	leaq offsets(%rip), %rdx
	movslq (%rdx,%rdi,4), %rax
	leaq 1f(%rip), %rdx
	addq %rdx, %rax
	jmp *%rax
1:	leaq 1(%rdi), %rax
	ret
2:	ret
	.skip 8, 0x90
	.section .rodata
offsets: .long 0, 2b-1b
	.text`, "entry exit exit"}, // and no site from one return into the other
		{"one function or another", `
f:	leaq g(%rip), %rcx
	testq %rdi, %rdi
	leaq h(%rip), %rax
	cmovneq %rcx, %rax
	jmp *%rax
	.size f, .-f
	.type g, @function
g:	leaq 2(%rdi), %rax
	ret
	.size g, .-g
	.type h, @function
h:	leaq 3(%rdi), %rax
	ret
	.size h, .-h`, "entry exit"},
		{"a function, or a computed place", `
f:	leaq 1f(%rip), %rax
	leaq g(%rip), %rcx
	leaq (%rax,%rdi,4), %rax
	testq %rdi, %rdi
	cmovneq %rcx, %rax
	jmp *%rax
1:	leaq 1(%rdi), %rax
	ret
	.size f, .-f
	.type g, @function
g:	leaq 2(%rdi), %rax
	ret
	.size g, .-g`, "unresolved-jump"},
		{"labels in an array", `
f:	leaq labels(%rip), %rcx
	movzbl (%rdi), %eax
	jmp *(%rcx,%rax,8)
1:	movzbl 1(%rdi), %edx
	movq (%rcx,%rdx,8), %rdx
	jmp *%rdx
2:	leaq 1(%rdi), %rax
	ret
3:	ret
	.skip 8, 0x90
	.section .data.rel.ro, "aw"
	.balign 8
labels:	.quad 0, 1b, 2b, 3b
	.text`, "entry exit exit"}, // and no site from one return into the other
		{"labels in an array, and functions in another", `
f:	leaq labels(%rip), %rcx
	leaq functions(%rip), %r8
	movzbl (%rdi), %eax
	jmp *(%rcx,%rax,8)
1:	movzbl 1(%rdi), %edx
	jmp *(%r8,%rdx,8)
2:	leaq 1(%rdi), %rax
	ret
	.globl g
	.type g, @function
g:	leaq 2(%rdi), %rax
	ret
	.size g, .-g
	.size f, g-f
	.section .data.rel.ro, "aw"
	.balign 8
labels:	.quad 1b, 2b
	.skip 32
functions: .quad g, 0
	.text`, "unresolved-jump"},
		{"a jump through memory below the stack", `
f:	leaq 1(%rdi), %rax
	movq %rsi, -24(%rsp)
	jmp *-24(%rsp)`, "unmovable-instruction"},
		{"the red zone is handed over", `
f:	movq %rdi, -24(%rsp)
	testq %rsi, %rsi
	jz g+5
	leaq 1(%rdi), %rax
	ret
	.size f, .-f
	.globl g
	.type g, @function
g:	movq %rsi, -24(%rsp)
	movq -24(%rsp), %rax
	ret
	.size g, .-g`, "shared-body"},
		{"a transaction", `
f:	xbegin 1f
	xend
1:	ret`, "unmovable-instruction"},
		{"a system call first", `
f:	syscall
	ret`, "unmovable-instruction"},
		{"nothing says where it ends", `
f:	leaq 1(%rdi), %rax
	ret
	.byte 0xc3, 0x48, 0x8d, 0x47, 0x01, 0xc3
	.size f, 0
	.if 0`, "entry(1)"}, // and no site in what may be data
	} {
		t.Run(c.name, func(t *testing.T) {
			im, f := planAssembly(t, c.code)
			if got := sitesOf(im, f); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// GHC puts a table in front of each function, at a multiple of eight. One that begins as padding does isn't taken for any.
func TestATableIsNoPadding(t *testing.T) {
	for _, c := range []struct{ name, before, behind, want string }{
		{"at once", ".skip 7, 0xc3", ".quad 0x1e9090909090", "entry-too-short"},
		{"behind padding", ".skip 2, 0xc3", ".balign 8, 0x90\n.quad 0xcccccccccc, 0x1e", "entry(1)"},
		{"a byte short", ".skip 4, 0xc3", ".balign 8, 0x90\n.quad 0xcccccccccc, 0x1e", "entry-too-short"},
		{"no table", ".skip 7, 0xc3", ".balign 16, 0x90", "entry(1)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			im, f := planAssembly(t, fmt.Sprintf(`
	.balign 16
	%s
f:	ret
	.size f, .-f
	%s
	.type g, @function
g:	ret
	.size g, .-g`, c.before, c.behind))
			if got := sitesOf(im, f); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			table := (f.Addr + f.Size + 7) &^ 7
			for _, s := range f.Sites {
				if c.name != "no table" && max(s.End(), s.Island+NearJump) > table {
					t.Errorf("the site at %#x and its island at %#x take of the table at %#x", s.Addr, s.Island, table)
				}
			}
		})
	}
}

// planAssembly plans the function f of a shared library.
func planAssembly(t *testing.T, code string) (*Image, *Function) {
	t.Helper()
	realtest.Need(t, realtest.AMD64)
	gcc := realtest.Tool(t, realtest.GCC)
	out := filepath.Join(t.TempDir(), "f.so")
	cmd := exec.Command(gcc, "-nostdlib", "-shared", "-x", "assembler", "-o", out, "-")
	end := "\n.size f, .-f\n"
	if strings.Contains(code, ".size f") {
		end = "\n"
	}
	if strings.Contains(code, ".if 0") {
		end += ".endif\n"
	}
	cmd.Stdin = strings.NewReader(".text\n.globl f\n.type f, @function\n" + code + end + ".section .note.GNU-stack, \"\", @progbits\n")
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	im := openTestImage(t, out)
	plan := planImage(t, im)
	for i := range plan {
		if plan[i].Name == "f" {
			return im, &plan[i]
		}
	}
	t.Fatal("there is no f")
	return nil, nil
}
