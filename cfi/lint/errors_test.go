package lint

import (
	"fmt"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

// In the assembly below "bad:" marks the instruction at which an error shows. It becomes a label of the function's own.
type deliberate struct {
	name, body string
	want       string // kind: says; truth; directive. Several are separated by newlines, in the order of their addresses
}

var deliberateErrors = []deliberate{
	{"push_without_adjustment", `
	push %rdi
bad:	pop %rdi
	ret`,
		"cfa: cfa=rsp+8; cfa=rsp+16; .cfi_adjust_cfa_offset 8"},
	{"adjustment_of_the_wrong_size", `
	sub $24, %rsp
	.cfi_adjust_cfa_offset 16
bad:	call ext
	add $24, %rsp
	.cfi_adjust_cfa_offset -16
	ret`,
		"cfa: cfa=rsp+24; cfa=rsp+32; .cfi_def_cfa_offset 32"},
	{"wrong_at_the_return_only", `
	sub $72, %rsp
	.cfi_adjust_cfa_offset 72
	call ext
	add $72, %rsp
	.cfi_adjust_cfa_offset 88
bad:	ret`,
		"cfa: cfa=rsp+168; cfa=rsp+8; .cfi_def_cfa_offset 8"},
	{"epilogue_left_out", `
	push %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -16
	mov %rdi, %rbx
	call ext
	mov %rbx, %rax
	pop %rbx
bad:	ret`,
		"epilogue: cfa=rsp+16; cfa=rsp+8; .cfi_adjust_cfa_offset -8"},
	{"state_not_remembered", `
	push %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -16
	test %edi, %edi
	je 1f
	pop %rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret
bad:
1:	call ext
	pop %rbx
	.cfi_def_cfa_offset 8
	ret`,
		"cfa: cfa=rsp+8; cfa=rsp+16; .cfi_restore_state"},
	{"frame_register_not_set_up", `
	push %rbp
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbp, -16
	.cfi_def_cfa_register %rbp
bad:	mov %rsp, %rbp
	call ext
	pop %rbp
	.cfi_def_cfa %rsp, 8
	ret`,
		"cfa: cfa=rbp+16; cfa=rsp+16; .cfi_def_cfa rsp, 16"},
	{"frame_register_given_back", `
	push %rbp
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbp, -16
	mov %rsp, %rbp
	.cfi_def_cfa_register %rbp
	call ext
	leave
bad:	ret`,
		"epilogue: cfa=rbp+16; cfa=rsp+8; .cfi_def_cfa rsp, 8"},
	{"clobbered_without_a_rule", `
	push %rbx
	.cfi_adjust_cfa_offset 8
	mov %rdi, %rbx
bad:	call ext
	pop %rbx
	.cfi_adjust_cfa_offset -8
	ret`,
		"register: rbx=same; rbx=[cfa-16]; .cfi_offset rbx, -16"},
	{"clobbered_and_lost", `
	xor %r12d, %r12d
bad:	mov %r12, %rax
	ret`,
		"register: r12=same; r12 is lost; .cfi_undefined r12"},
	{"saved_at_another_place", `
	push %rbx
	.cfi_adjust_cfa_offset 8
	push %r12
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -24
	.cfi_offset %r12, -16
bad:	pop %r12
	.cfi_adjust_cfa_offset -8
	pop %rbx
	.cfi_adjust_cfa_offset -8
	ret`,
		"register: r12=[cfa-16]; r12=[cfa-24]; .cfi_offset r12, -24\nregister: rbx=[cfa-24]; rbx=[cfa-16]; .cfi_offset rbx, -16"},
	{"kept_in_a_register", `
	mov %rbx, %r11
	mov %rdi, %rbx
bad:	mov %rbx, %rax
	mov %r11, %rbx
	ret`,
		"register: rbx=same; rbx=r11; .cfi_register rbx, r11"},
	{"rule_before_the_push", `
	.cfi_offset %rbx, -16
bad:	push %rbx
	.cfi_adjust_cfa_offset 8
	pop %rbx
	.cfi_adjust_cfa_offset -8
	ret`,
		"register: rbx=[cfa-16]; rbx=same; .cfi_same_value rbx"},
	{"slot_overwritten", `
	push %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -16
	mov %rbx, %rcx
	mov %rdi, (%rsp)
bad:	mov %rcx, %rbx
	add $8, %rsp
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret`,
		"register: rbx=[cfa-16]; rbx=same; .cfi_same_value rbx"},
	{"return_address_elsewhere", `
	.cfi_offset %rip, -16
bad:	ret`,
		"return-address: ra=[cfa-16]; ra=[cfa-8]; .cfi_offset rip, -8"},
	{"expression_off_by_eight", `
	mov %rsp, %rax
	.cfi_def_cfa_register %rax
	and $-64, %rsp
	push %rax
	.cfi_escape 0x0f, 0x05, 0x77, 0x00, 0x06, 0x23, 0x10
bad:	call ext
	pop %rsp
	.cfi_def_cfa %rsp, 8
	ret`,
		"cfa: cfa=expr(rsp+0; deref; plus_uconst 16); cfa=rax+8; .cfi_def_cfa rax, 8"},
	{"expression_of_nothing", `
	sub $8, %rsp
bad:	.cfi_escape 0x0f, 0x01, 0x22
	call ext
	add $8, %rsp
	.cfi_def_cfa %rsp, 8
	ret`,
		"damaged: cfa=expr(plus); expression: plus at byte 0: stack holds too few values; "},
	{"row_within_an_instruction", `
	push %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -16
	call ext
bad:	.byte 0x5b
	.byte 0xf3
	.cfi_adjust_cfa_offset -8
	.byte 0xc3`,
		"epilogue: cfa=rsp+16; cfa=rsp+8; .cfi_adjust_cfa_offset -8\nrow-boundary: from"},
	{"register_for_an_expression", `
bad:	.cfi_escape 0x0f, 0x03, 0x77, 0x08, 0x96
	nop
	.cfi_def_cfa_register %rsp
	ret`,
		"damaged: a register for a CFA that is an expression"},
	{"remembered_for_nothing", `
bad:	.cfi_remember_state
	ret`,
		"unbalanced: remember_state, 1 times more often than restore_state; no state is left at the end; .cfi_restore_state"},
	{"restored_from_nothing", `
	nop
	.cfi_escape 0x0b
bad:	ret`,
		"unbalanced: restore_state; no state is remembered; .cfi_remember_state"},
	{"unknown_instruction", `
	nop
	.cfi_escape 0x3f
bad:	ret`,
		"damaged: cfi"},
	{"rows_behind_the_end", `
bad:	ret
	.cfi_escape 0x41, 0x0e, 0x10, 0x41, 0x0e, 0x18`,
		"row-outside: rows up to"},
	{"jump_table_case", `
	push %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -16
	cmp $1, %edi
	ja 3f
	mov %edi, %edi
	lea 9f(%rip), %rdx
	movslq (%rdx,%rdi,4), %rax
	add %rdx, %rax
	jmp *%rax
1:	push %rcx
bad:	pop %rcx
	.section .rodata
	.p2align 2
9:	.long 1b - 9b, 3f - 9b
	.text
3:	pop %rbx
	.cfi_adjust_cfa_offset -8
	ret`,
		"cfa: cfa=rsp+16; cfa=rsp+24; .cfi_adjust_cfa_offset 8"},
	{"another_register", `
	push %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %xmm6, -16
bad:	pop %rbx
	.cfi_adjust_cfa_offset -8
	ret`,
		"register: xmm6=[cfa-16]; rbx is saved there; .cfi_offset rbx, -16"},
	{"vector_saved_nowhere", `
	sub $24, %rsp
	.cfi_adjust_cfa_offset 24
	.cfi_offset %xmm6, -32
bad:	add $24, %rsp
	.cfi_adjust_cfa_offset -24
	.cfi_restore %xmm6
	ret`,
		"register: xmm6=[cfa-32]; the function does not write there; .cfi_same_value xmm6"},
	{"argument_said_to_be_kept", `
	.cfi_same_value %rdi
	xor %edi, %edi
bad:	ret`,
		"register: rdi=same; rdi is lost; .cfi_undefined rdi"},
	{"said_to_be_lost", `
	.cfi_undefined %rbx
bad:	ret`,
		"register: rbx=undefined; rbx=same; .cfi_same_value rbx"},
	{"no_caller_to_return_to", `
	.cfi_undefined %rip
	xor %eax, %eax
bad:	ret`,
		"return-address: ra=undefined; "},
	{"expression_of_an_argument", `
bad:	.cfi_escape 0x0f, 0x09, 0x77, 0x08, 0x72, 0x00, 0x31, 0x1a, 0x33, 0x24, 0x22
	nop
	.cfi_def_cfa %rsp, 8
	ret`,
		"cfa: cfa=expr("},
	{"expression_with_a_branch", `
bad:	.cfi_escape 0x0f, 0x08, 0x77, 0x10, 0x31, 0x28, 0x01, 0x00, 0x96, 0x96
	nop
	.cfi_def_cfa %rsp, 8
	ret`,
		"cfa: cfa=expr("},
	{"register_at_a_computed_place", `
	push %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_escape 0x10, 0x03, 0x05, 0x11, 0x70, 0x22, 0x23, 0x08
bad:	xor %ebx, %ebx
	call ext
	pop %rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret`,
		"register: rbx=[expr("},
	{"pushed_flags", `
	pushfq
bad:	popfq
	ret`,
		"cfa: cfa=rsp+8; cfa=rsp+16; .cfi_adjust_cfa_offset 8"},
	{"pushed_memory", `
	pushq (%rdi)
bad:	popq (%rsi)
	ret`,
		"cfa: cfa=rsp+8; cfa=rsp+16; .cfi_adjust_cfa_offset 8"},
	{"moved_by_lea", `
	lea -40(%rsp), %rsp
bad:	call ext
	lea 40(%rsp), %rsp
	ret`,
		"cfa: cfa=rsp+8; cfa=rsp+48; .cfi_adjust_cfa_offset 40"},
	{"entered", `
	enter $16, $0
bad:	call ext
	leave
	ret`,
		"cfa: cfa=rsp+8; cfa=rsp+32; .cfi_adjust_cfa_offset 24"},
	{"exchanged", `
	mov %rsp, %rcx
	sub $32, %rsp
	.cfi_adjust_cfa_offset 32
	xchg %rsp, %rcx
bad:	nop
	xchg %rcx, %rsp
	add $32, %rsp
	.cfi_adjust_cfa_offset -32
	ret`,
		"cfa: cfa=rsp+40; cfa=rsp+8; .cfi_adjust_cfa_offset -32"},
	{"aligned_without_a_frame_register", `
	mov %rsp, %rax
	sub $40, %rsp
	.cfi_adjust_cfa_offset 40
	and $-32, %rsp
bad:	mov %rax, (%rsp)
	mov %rax, %rsp
	.cfi_def_cfa_offset 8
	ret`,
		"cfa: cfa=rsp+48; cfa=rax+8; .cfi_def_cfa rax, 8"},
	{"room_of_any_size", `
	mov %rsp, %rax
	sub %rdi, %rsp
bad:	movb $0, (%rsp)
	mov %rax, %rsp
	ret`,
		"cfa: cfa=rsp+8; cfa=rax+8; .cfi_def_cfa rax, 8"},
	{"saved_below_the_stack_pointer", `
	mov %rbx, -8(%rsp)
	mov %rdi, %rbx
bad:	mov (%rbx), %rax
	mov -8(%rsp), %rbx
	ret`,
		"register: rbx=same; rbx=[cfa-16]; .cfi_offset rbx, -16"},
	{"address_by_call_not_followed", `
	call 1f
bad:
1:	pop %rax
	ret`,
		"cfa: cfa=rsp+8; cfa=rsp+16; .cfi_adjust_cfa_offset 8"},
	{"address_by_call_not_taken_back", `
	call 1f
	.cfi_adjust_cfa_offset 8
1:	pop %rax
bad:	ret`,
		"epilogue: cfa=rsp+16; cfa=rsp+8; .cfi_adjust_cfa_offset -8"},
	{"row_changed_by_a_call", `
	push %rdi
	.cfi_adjust_cfa_offset 8
	call ext
	.cfi_adjust_cfa_offset -8
bad:	pop %rdi
	ret`,
		"cfa: cfa=rsp+8; cfa=rsp+16; .cfi_def_cfa_offset 16"},
	{"frame_register_popped", `
	push %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -16
	mov %rsp, %rbx
	.cfi_def_cfa_register %rbx
	call ext
	mov %edi, -4(%rbx)
	mov %rbx, %rsp
	pop %rbx
bad:	nop
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbx
	ret`,
		"cfa: cfa=rbx+16; "},
	{"narrow_store_beside_the_frame_register", `
	push %rbp
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbp, -16
	mov %rsp, %rbp
	.cfi_def_cfa_register %rbp
	mov %edi, -4(%rbp)
	pop %rbp
	.cfi_def_cfa %rbp, 8
bad:	ret`,
		"cfa: cfa=rbp+8; cfa=rsp+8; .cfi_def_cfa rsp, 8"},
	{"restored_before_the_reload", `
	push %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -16
	sub $64, %rsp
	.cfi_adjust_cfa_offset 64
	lea (%rsp,%rdi,8), %rcx
	mov (%rcx,%rdi,8), %rbx
	.cfi_restore %rbx
bad:	call ext
	add $64, %rsp
	.cfi_adjust_cfa_offset -64
	pop %rbx
	.cfi_adjust_cfa_offset -8
	ret`,
		"register: rbx=same; rbx=[cfa-16]; .cfi_offset rbx, -16"},
	{"not_restored_when_popped", `
	push %rbp
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbp, -16
	mov %rdi, %rbp
	pop %rbp
	.cfi_adjust_cfa_offset -8
	call ext
bad:	ret`,
		"register: rbp=[cfa-16]; rbp=same; .cfi_same_value rbp"},
	{"realigned_by_a_register_across_a_call", `
	lea 8(%rsp), %r10
	.cfi_def_cfa %r10, 0
	and $-64, %rsp
	push -8(%r10)
	push %rbp
	mov %rsp, %rbp
	.cfi_escape 0x10, 0x06, 0x02, 0x76, 0x00
	push %r10
	sub $56, %rsp
	call *(%rdi)
bad:	add $56, %rsp
	pop %r10
	.cfi_def_cfa %r10, 0
	pop %rbp
	lea -8(%r10), %rsp
	.cfi_def_cfa %rsp, 8
	ret`,
		"cfa: cfa=r10+0; "},
	{"realigned_by_another_slot", `
	lea 8(%rsp), %r10
	.cfi_def_cfa %r10, 0
	and $-64, %rsp
	push -8(%r10)
	push %rbp
	mov %rsp, %rbp
	.cfi_escape 0x10, 0x06, 0x02, 0x76, 0x00
	push %r10
	sub $56, %rsp
	.cfi_escape 0x0f, 0x03, 0x76, 0x70, 0x06
bad:	call *(%rdi)
	add $56, %rsp
	pop %r10
	.cfi_def_cfa %r10, 0
	pop %rbp
	lea -8(%r10), %rsp
	.cfi_def_cfa %rsp, 8
	ret`,
		"cfa: cfa=expr(rbp-16; deref); "},
	{"ends_before_its_last_block", `
	test %edi, %edi
	je 1f
	ret
	.cfi_endproc
bad:
1:	xor %eax, %eax
	ret
	.cfi_startproc
	nop`,
		"no-cfi: an FDE for "},
	{"ends_behind_a_call", `
	call ext
	.cfi_endproc
bad:	xor %eax, %eax
	ret
	.cfi_startproc
	ret`,
		"no-cfi: an FDE for "},
	{"tail_jump_with_a_frame", `
	push %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -16
	call ext
	pop %rbx
bad:	jmp ext`,
		"epilogue: cfa=rsp+16; cfa=rsp+8; .cfi_adjust_cfa_offset -8"},
}

// assemble wraps each function in what the assembler needs, and a label for where its error shows.
func assemble(t testing.TB, functions []deliberate, rest string, flags ...string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("\t.text\n\t.globl ext\n\t.hidden ext\n\t.type ext, @function\next:\n\t.cfi_startproc\n\tret\n\t.cfi_endproc\n\t.size ext, .-ext\n")
	for _, d := range functions {
		body := strings.ReplaceAll(d.body, "bad:", "bad_"+d.name+":")
		fmt.Fprintf(&b, "\t.p2align 4\n\t.globl %[1]s\n\t.type %[1]s, @function\n%[1]s:\n\t.cfi_startproc%[2]s\n\t.cfi_endproc\n\t.size %[1]s, .-%[1]s\n", d.name, body)
	}
	b.WriteString(rest)
	b.WriteString("\t.section .note.GNU-stack,\"\",@progbits\n")
	return build(t, realtest.GCC, b.String(), ".S", flags...)
}

func TestDeliberateErrorsAreFound(t *testing.T) {
	realtest.Need(t, realtest.AMD64, realtest.GCC)
	path := assemble(t, deliberateErrors, "")
	at := labels(t, path)
	found := map[string][]Finding{}
	for _, f := range checkFile(t, path).Findings {
		found[f.Function] = append(found[f.Function], f)
	}
	for _, d := range deliberateErrors {
		var got []string
		for _, f := range found[d.name] {
			got = append(got, fmt.Sprintf("%s: %s; %s; %s", f.Kind, f.Says, f.Truth, f.Directive))
		}
		want := strings.Split(d.want, "\n")
		if len(got) != len(want) {
			t.Errorf("%s: found\n\t%s\nwant\n\t%s", d.name, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
			continue
		}
		for k := range want {
			if !strings.HasPrefix(got[k], want[k]) {
				t.Errorf("%s: found\n\t%s\nwant\n\t%s", d.name, got[k], want[k])
			}
		}
		if first := found[d.name][0].Address; d.name != "row_within_an_instruction" && first != at["bad_"+d.name] {
			t.Errorf("%s: found at %#x, want %#x", d.name, first, at["bad_"+d.name])
		}
		delete(found, d.name)
	}
	for name, list := range found {
		t.Errorf("%s: %+v", name, list)
	}
}

// labels returns the addresses of all symbols.
func labels(t testing.TB, path string) map[string]uint64 {
	t.Helper()
	im, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	symbols, err := im.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]uint64{}
	for _, s := range symbols {
		list[s.Name] = s.Addr
	}
	return list
}

func TestFunctionsWithoutCFIAreFound(t *testing.T) {
	realtest.Need(t, realtest.AMD64, realtest.GCC)
	path := assemble(t, nil, `
	.globl bare
	.type bare, @function
bare:	push %rax
	pop %rax
	ret
	.size bare, .-bare
	.globl data
	.type data, @object
data:	.quad 0
	.size data, 8
`)
	r := checkFile(t, path)
	if len(r.Findings) != 1 || r.Findings[0].Kind != NoCFI || r.Findings[0].Function != "bare" || r.Findings[0].Directive != ".cfi_startproc" {
		t.Errorf("%+v", r.Findings)
	}
}
