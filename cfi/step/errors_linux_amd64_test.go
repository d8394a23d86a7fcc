package step

import (
	"testing"

	"github.com/callreel/callreel/cfi/lint"
)

// wrong is a function with an error at the label "here", and the finding that it is to give.
type wrong struct {
	name string
	code string
	want []lint.Finding // Address is relative to here; Function is left out
}

var wrongs = []wrong{
	{"nothing is wrong", `
		push %rbx
		.cfi_adjust_cfa_offset 8
		.cfi_offset %rbx, -16
		mov $1, %ebx
	here:	sub $16, %rsp
		.cfi_adjust_cfa_offset 16
		call other@plt
		add $16, %rsp
		.cfi_adjust_cfa_offset -16
		pop %rbx
		.cfi_adjust_cfa_offset -8
		.cfi_restore %rbx
		ret`, nil},
	{"the frame that is about to be installed", `
		lea 64(%rsp), %rdi
		lea 72(%rsp), %r8
		.cfi_remember_state
		.cfi_def_cfa %rdi, 0
		.cfi_register %rsp, %r8
	here:	nop
		.cfi_restore_state
		ret`, nil},
	{"a push without an adjustment", `
		push %rdi
	here:	nop
		nop
		pop %rdi
		ret`, []lint.Finding{{Kind: lint.WrongCFA, Says: "cfa=rsp+8", Truth: "cfa=rsp+16", Directive: ".cfi_adjust_cfa_offset 8"}}},
	{"an adjustment with the wrong sign at the return", `
		sub $72, %rsp
		.cfi_adjust_cfa_offset 72
		lea 72(%rsp), %rsp
		.cfi_adjust_cfa_offset 88
	here:	rep ret`, []lint.Finding{{Kind: lint.WrongCFA, Says: "cfa=rsp+168", Truth: "cfa=rsp+8", Directive: ".cfi_def_cfa_offset 8"}}},
	{"two errors of the same kind apart", `
		push %rdi
	here:	pop %rdi
		nop
		push %rdi
		pop %rdi
		ret`, []lint.Finding{
		{Kind: lint.WrongCFA, Says: "cfa=rsp+8", Truth: "cfa=rsp+16", Directive: ".cfi_adjust_cfa_offset 8"},
		{Kind: lint.WrongCFA, Address: 3, Says: "cfa=rsp+8", Truth: "cfa=rsp+16", Directive: ".cfi_adjust_cfa_offset 8"},
	}},
	{"two pushes without adjustments", `
		push %rdi
	here:	push %rdi
		pop %rdi
		pop %rdi
		ret`, []lint.Finding{
		{Kind: lint.WrongCFA, Says: "cfa=rsp+8", Truth: "cfa=rsp+16", Directive: ".cfi_adjust_cfa_offset 8"},
		{Kind: lint.WrongCFA, Address: 1, Says: "cfa=rsp+8", Truth: "cfa=rsp+24", Directive: ".cfi_adjust_cfa_offset 8"},
		{Kind: lint.WrongCFA, Address: 2, Says: "cfa=rsp+8", Truth: "cfa=rsp+16", Directive: ".cfi_adjust_cfa_offset -8"},
	}},
	{"a frame by the frame pointer before there is one", `
		push %rbp
		.cfi_def_cfa %rbp, 16
		.cfi_offset %rbp, -16
	here:	mov %rsp, %rbp
		pop %rbp
		.cfi_def_cfa %rsp, 8
		.cfi_restore %rbp
		ret`, []lint.Finding{{Kind: lint.WrongCFA, Says: "cfa=rbp+16", Truth: "cfa=rsp+16", Directive: ".cfi_def_cfa rsp, 16"}}},
	{"a saved register that is not described", `
		push %rbx
		.cfi_adjust_cfa_offset 8
		mov $0x1234567, %ebx
	here:	nop
		pop %rbx
		.cfi_adjust_cfa_offset -8
		ret`, []lint.Finding{{Kind: lint.WrongRegister, Says: "rbx=same", Truth: "rbx=[cfa-16]", Directive: ".cfi_offset rbx, -16"}}},
	{"a register saved elsewhere", `
		push %rbx
		.cfi_adjust_cfa_offset 8
		push %rdi
		.cfi_adjust_cfa_offset 8
		.cfi_offset %rbx, -24
	here:	mov $0x1234567, %ebx
		pop %rdi
		.cfi_adjust_cfa_offset -8
		pop %rbx
		.cfi_adjust_cfa_offset -8
		.cfi_restore %rbx
		ret`, []lint.Finding{{Kind: lint.WrongRegister, Says: "rbx=[cfa-24]", Truth: "rbx=same", Directive: ".cfi_same_value rbx"}}},
	{"a register kept in another", `
		mov %rbx, %r11
		mov $0x1234567, %ebx
	here:	nop
		mov %r11, %rbx
		ret`, []lint.Finding{{Kind: lint.WrongRegister, Says: "rbx=same", Truth: "rbx=r11", Directive: ".cfi_register rbx, r11"}}},
	{"a return address that is said to be elsewhere", `
		sub $8, %rsp
		.cfi_adjust_cfa_offset 8
		.cfi_offset %rip, -16
	here:	add $8, %rsp
		.cfi_adjust_cfa_offset -8
		.cfi_offset %rip, -8
		ret`, []lint.Finding{{Kind: lint.WrongRA, Says: "ra=[cfa-16]", Truth: "ra=[cfa-8]", Directive: ".cfi_offset rip, -8"}}},
	{"a popped return address that is described", `
		pop %rcx
		.cfi_adjust_cfa_offset -8
		.cfi_register %rip, %rcx
	here:	nop
		jmp *%rcx`, nil},
	{"a popped return address that is not described", `
		pop %rcx
		.cfi_adjust_cfa_offset -8
	here:	jmp *%rcx`, nil}, // it still stands below the stack pointer
	{"an expression that is right", `
		push %rbx
		.cfi_escape 0x0f, 0x02, 0x77, 0x10
		.cfi_offset %rbx, -16
	here:	mov $7, %ebx
		pop %rbx
		.cfi_def_cfa %rsp, 8
		.cfi_restore %rbx
		ret`, nil},
	{"an expression that is wrong", `
		push %rdi
		.cfi_escape 0x0f, 0x02, 0x77, 0x18
	here:	pop %rdi
		.cfi_def_cfa %rsp, 8
		ret`, []lint.Finding{{Kind: lint.WrongCFA, Says: "cfa=expr(rsp+24)", Truth: "cfa=rsp+16", Directive: ".cfi_def_cfa rsp, 16"}}},
}

// caller calls the function with values of its own in all registers that calls keep, and checks that it gets them back.
const caller = `
	.text
	.globl main
	.type main, @function
main:
	.cfi_startproc
	push %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -16
	push %rbp
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbp, -24
	sub $8, %rsp
	.cfi_adjust_cfa_offset 8
	movabs $0x1122334455667788, %rbx
	lea 1(%rbx), %rbp
	lea 2(%rbx), %r12
	lea 3(%rbx), %r13
	lea 4(%rbx), %r14
	lea 5(%rbx), %r15
	call checked
	movabs $0x1122334455667788, %rcx
	xor %eax, %eax
	cmp %rcx, %rbx
	setne %al
	add $8, %rsp
	.cfi_adjust_cfa_offset -8
	pop %rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbp
	pop %rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret
	.cfi_endproc
	.size main, .-main
	.type other, @function
	.globl other
other:
	.cfi_startproc
	mov $1, %eax
	ret
	.cfi_endproc
	.size other, .-other
	.globl checked
	.type checked, @function
`

func TestEachKindOfErrorIsFoundAtItsInstruction(t *testing.T) {
	for _, w := range wrongs {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			source := caller + "checked:\n.cfi_startproc\n" + w.code + "\n.cfi_endproc\n.size checked, .-checked\n.section .note.GNU-stack,\"\",@progbits\n"
			path := build(t, map[string]string{"x.S": source})
			here := addressOf(t, path, "here")
			r := follow(t, Options{Command: []string{path}}, "checked")
			if r.Calls != 1 || r.ExitStatus.Code != 0 || r.ExitStatus.Signal != 0 || r.Functions != 1 {
				t.Errorf("%+v", r)
			}
			if len(r.Findings) != len(w.want) {
				t.Fatalf("%d findings: %+v", len(r.Findings), r.Findings)
			}
			for k, want := range w.want {
				got := r.Findings[k]
				want.Address += here
				want.Function = "checked"
				if got.Finding != want || got.Module != "program" {
					t.Errorf("%+v, want %+v", got, want)
				}
			}
		})
	}
}

func TestAFunctionWithoutCallFrameInformationIsFound(t *testing.T) {
	source := caller + "checked:\nhere:\tnop\n\tret\n.size checked, .-checked\n.section .note.GNU-stack,\"\",@progbits\n"
	path := build(t, map[string]string{"x.S": source})
	r := follow(t, Options{Command: []string{path}}, "checked")
	want := lint.Finding{Kind: lint.NoCFI, Function: "checked", Address: addressOf(t, path, "here"), Says: "nothing", Truth: "a function of 2 bytes", Directive: ".cfi_startproc"}
	if len(r.Findings) != 1 || r.Findings[0].Finding != want {
		t.Errorf("%+v, want %+v", r.Findings, want)
	}
}

func TestARowThatCannotBeReadIsFound(t *testing.T) {
	source := caller + "checked:\n.cfi_startproc\nnop\n.cfi_escape 0x3f\nhere:\tnop\n\tret\n.cfi_endproc\n.size checked, .-checked\n.section .note.GNU-stack,\"\",@progbits\n"
	path := build(t, map[string]string{"x.S": source})
	r := follow(t, Options{Command: []string{path}}, "checked")
	if len(r.Findings) != 1 || r.Findings[0].Kind != lint.Damaged || r.Findings[0].Function != "checked" {
		t.Errorf("%+v", r.Findings)
	}
}
