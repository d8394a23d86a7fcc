/*
 * Loads every register with a pattern, calls, and stores every register again.
 * Flags are stored first and loaded last but for plain moves, which leave them
 * alone.
 */
#include "state.h"

#define AT(offset) %fs:state_block@tpoff+offset

        .macro  store_gprs area
        movq    %rax, AT(\area+0)
        movq    %rbx, AT(\area+8)
        movq    %rcx, AT(\area+16)
        movq    %rdx, AT(\area+24)
        movq    %rsi, AT(\area+32)
        movq    %rdi, AT(\area+40)
        movq    %rbp, AT(\area+48)
        movq    %r8, AT(\area+56)
        movq    %r9, AT(\area+64)
        movq    %r10, AT(\area+72)
        movq    %r11, AT(\area+80)
        movq    %r12, AT(\area+88)
        movq    %r13, AT(\area+96)
        movq    %r14, AT(\area+104)
        movq    %r15, AT(\area+112)
        movq    %rsp, AT(\area+REGS_RSP)
        .endm

        .macro  load_gprs area
        movq    AT(\area+0), %rax
        movq    AT(\area+8), %rbx
        movq    AT(\area+16), %rcx
        movq    AT(\area+24), %rdx
        movq    AT(\area+32), %rsi
        movq    AT(\area+40), %rdi
        movq    AT(\area+48), %rbp
        movq    AT(\area+56), %r8
        movq    AT(\area+64), %r9
        movq    AT(\area+72), %r10
        movq    AT(\area+80), %r11
        movq    AT(\area+88), %r12
        movq    AT(\area+96), %r13
        movq    AT(\area+104), %r14
        movq    AT(\area+112), %r15
        .endm

        .macro  store_all area
        store_gprs \area
        pushfq
        .cfi_adjust_cfa_offset 8
        popq    AT(\area+REGS_FLAGS)
        .cfi_adjust_cfa_offset -8
        cld
        fxsave64 AT(\area+REGS_FX)
        cmpl    $1, AT(BLOCK_WIDTH)
        jb      3f
        ja      2f
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        vmovdqu %ymm\n, AT(\area+REGS_ZMM+\n*64)
        .endr
        jmp     3f
2:      .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        vmovdqu64 %zmm\n, AT(\area+REGS_ZMM+\n*64)
        .endr
        .irp    n, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
        vmovdqu64 %zmm\n, AT(\area+REGS_ZMM+\n*64)
        .endr
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
        kmovq   %k\n, AT(\area+REGS_K+\n*8)
        .endr
3:
        .endm

        .macro  load_all area
        fxrstor64 AT(\area+REGS_FX)
        cmpl    $1, AT(BLOCK_WIDTH)
        jb      3f
        ja      2f
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        vmovdqu AT(\area+REGS_ZMM+\n*64), %ymm\n
        .endr
        jmp     3f
2:      .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        vmovdqu64 AT(\area+REGS_ZMM+\n*64), %zmm\n
        .endr
        .irp    n, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
        vmovdqu64 AT(\area+REGS_ZMM+\n*64), %zmm\n
        .endr
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
        kmovq   AT(\area+REGS_K+\n*8), %k\n
        .endr
3:      pushq   AT(\area+REGS_FLAGS)
        .cfi_adjust_cfa_offset 8
        popfq
        .cfi_adjust_cfa_offset -8
        load_gprs \area
        .endm

        .macro  function name
        .p2align 4
        .globl  \name
        .type   \name, @function
\name:
        .cfi_startproc
        .endm

        .macro  end name
        .cfi_endproc
        .size   \name, .-\name
        .endm

        .macro  save reg
        pushq   %\reg
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset \reg, 0
        .endm

        .macro  restore reg
        popq    %\reg
        .cfi_adjust_cfa_offset -8
        .cfi_restore \reg
        .endm

        .text
        function state_call
        save    rbx
        save    rbp
        save    r12
        save    r13
        save    r14
        save    r15
        subq    $24, %rsp
        .cfi_adjust_cfa_offset 24
        stmxcsr 8(%rsp)
        fnstcw  12(%rsp)
        movq    shape_constant(%rip), %rax
        movq    %rax, (%rsp)            /* a stack argument */
        movq    %rsp, AT(BLOCK_RSP)
        load_all BLOCK_IN
        call    *AT(BLOCK_CALLEE)
        store_all BLOCK_OUT
        movq    AT(BLOCK_RSP), %rsp
        cmpl    $0, AT(BLOCK_WIDTH)
        je      1f
        vzeroupper
1:      fninit
        fldcw   12(%rsp)
        ldmxcsr 8(%rsp)
        addq    $24, %rsp
        .cfi_adjust_cfa_offset -24
        restore r15
        restore r14
        restore r13
        restore r12
        restore rbp
        restore rbx
        ret
        end     state_call

        function state_seer
        store_all BLOCK_SEEN
        load_all BLOCK_EXIT
        ret
        end     state_seer

        function state_seer_endbr
        endbr64
        store_all BLOCK_SEEN
        load_all BLOCK_EXIT
        ret
        end     state_seer_endbr

        function state_seer_tail
        store_all BLOCK_SEEN
        load_all BLOCK_EXIT
        jmp     shape_ret
        end     state_seer_tail

        .section .note.GNU-stack, "", @progbits
