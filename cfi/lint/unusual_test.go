package lint

import (
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// Correct code that does unusual things to the stack.
var unusual = []deliberate{
	{"return_with_arguments", "\n\tret $16", ""},
	{"enter_and_leave", `
	enter $32, $0
	.cfi_def_cfa %rbp, 16
	.cfi_offset %rbp, -16
	call ext
	leave
	.cfi_def_cfa %rsp, 8
	ret`, ""},
	{"address_by_call", `
	call 1f
	.cfi_adjust_cfa_offset 8
1:	pop %rax
	.cfi_adjust_cfa_offset -8
	ret`, ""},
	{"exchanged_stack_pointer", `
	mov %rsp, %rax
	xchg %rax, %rcx
	.cfi_def_cfa_register %rcx
	and $-32, %rsp
	call 2f
2:	mov %rcx, %rsp
	.cfi_def_cfa_register %rsp
	ret`, ""},
	{"switches_stacks", `
	mov %rsp, (%rdi)
	mov (%rsi), %rsp
	mov 8(%rsi), %rbx
	mov 16(%rsi), %rbp
	pop %rax
	jmp *%rax`, ""},
	{"aligned_frame", `
	push %rbp
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbp, -16
	mov %rsp, %rbp
	.cfi_def_cfa_register %rbp
	push %rbx
	.cfi_offset %rbx, -24
	sub $100, %rsp
	and $-64, %rsp
	call ext
	mov -8(%rbp), %rbx
	leave
	.cfi_def_cfa %rsp, 8
	ret`, ""},
	{"frame_behind_a_pointer", `
	mov %rsp, %rax
	.cfi_def_cfa_register %rax
	push %rbx
	.cfi_offset %rbx, -16
	sub $128, %rsp
	and $-64, %rsp
	mov %rax, 96(%rsp)
	.cfi_escape 0x0f, 0x06, 0x77, 0xe0, 0x00, 0x06, 0x23, 0x08
	call ext
	mov 96(%rsp), %rax
	.cfi_def_cfa %rax, 8
	mov -8(%rax), %rbx
	.cfi_restore %rbx
	lea (%rax), %rsp
	.cfi_def_cfa_register %rsp
	ret`, ""},
	{"no_way_back", `
	push %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_remember_state
	.cfi_offset %rbx, -16
	xor %ebx, %ebx
	test %edi, %edi
	je 1f
	sub $16, %rsp
	.cfi_adjust_cfa_offset 16
	call ext
	.cfi_adjust_cfa_offset -16
1:	pop %rbx
	.cfi_restore_state
	.cfi_adjust_cfa_offset -8
	ret`, ""},
	{"probed_frame", `
	lea -32768(%rsp), %r11
	.cfi_def_cfa %r11, 32776
1:	sub $4096, %rsp
	orq $0, (%rsp)
	cmp %r11, %rsp
	jne 1b
	.cfi_def_cfa_register %rsp
	call ext
	add $32768, %rsp
	.cfi_def_cfa_offset 8
	ret`, ""},
	{"table_between_the_code", `
	lea 1f(%rip), %r11
	movslq (%r11,%rdi,4), %rax
	add %r11, %rax
	jmp *%rax
1:	.byte 0x3c, 0x00, 0x00, 0x00, 0x5e, 0x00, 0x00, 0x00
2:	mov (%rsi), %eax
	ret`, ""},
	{"frame_probed_by_a_call", `
	mov $8184, %eax
	call ext
	sub %rax, %rsp
	.cfi_adjust_cfa_offset 8184
	call ext
	add $8184, %rsp
	.cfi_adjust_cfa_offset -8184
	ret`, ""},
	{"saved_in_a_vector", `
	movq %rbx, %xmm15
	xor %ebx, %ebx
	movq %xmm15, %rbx
	ret`, ""},
	{"outermost", `
	.cfi_undefined %rip
	xor %ebp, %ebp
	push %rax
	and $-16, %rsp
	call ext
	hlt`, ""},
	{"container_that_moves_to_the_heap", `
	push %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -16
	sub $64, %rsp
	.cfi_adjust_cfa_offset 64
	lea 16(%rsp), %rax
	mov %rax, (%rsp)
	mov %rsp, %rdi
	call ext
	mov (%rsp), %rax
	xor %ebx, %ebx
	mov %rbx, 48(%rax)
	nop
	add $64, %rsp
	.cfi_adjust_cfa_offset -64
	pop %rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret`, ""},
	{"pushed_arguments_of_a_call_that_throws", `
	.cfi_personality 0x1b, ext
	.cfi_lsda 0x1b, 8f
	push %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -16
	push %rdi
	.cfi_adjust_cfa_offset 8
	push %rsi
	.cfi_adjust_cfa_offset 8
	.cfi_escape 0x2e, 0x10
6:	call ext
7:	add $16, %rsp
	.cfi_adjust_cfa_offset -16
	.cfi_escape 0x2e, 0x00
	pop %rbx
	.cfi_remember_state
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret
	.cfi_restore_state
5:	mov %rax, %rdi
	pop %rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret
	.section .gcc_except_table, "a", @progbits
8:	.byte 0xff, 0xff, 0x01, 4f - 3f
3:	.uleb128 6b - pushed_arguments_of_a_call_that_throws, 7b - 6b, 5b - pushed_arguments_of_a_call_that_throws, 0
4:	.text`, ""},
	{"signal_frame", `
	.cfi_signal_frame
	.cfi_def_cfa %rsp, 160
	mov $15, %eax
	syscall`, ""},
}

// alignedWithin is a function that other code than calls enters, with a word more on the stack, and that was aligned within
// its FDE.
const alignedWithin = `
	.cfi_startproc
	xchg %ax, %ax
	.cfi_def_cfa_offset 16
	sub $16, %rsp
	.cfi_adjust_cfa_offset 16
	call ext
	add $24, %rsp
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
`

func TestUnusualCodeHasNoFindings(t *testing.T) {
	realtest.Need(t, realtest.AMD64, realtest.GCC)
	for _, f := range checkFile(t, assemble(t, unusual, alignedWithin)).Findings {
		t.Errorf("%+v", f)
	}
}
