/*
 * Functions of every shape that a patcher may meet. Each leaves all registers
 * and flags as they are, except what its comment says, in terms of the values
 * at its entry. state.c calls each and compares everything.
 */
        .macro  shape name
        .p2align 4
        adjoin  \name
        .endm

        /* A shape that follows the one before it without a byte between. */
        .macro  adjoin name
        .globl  \name
        .type   \name, @function
\name:
        .cfi_startproc
        .endm

        .macro  end name
        .cfi_endproc
        .size   \name, .-\name
        .endm

        .text

/* --- Exits ------------------------------------------------------------- */

        /* One byte, with padding behind. */
        shape   shape_ret
        ret
        end     shape_ret

        /* rax = rdi + 1 */
        shape   shape_padded
        leaq    1(%rdi), %rax
        ret
        end     shape_padded

        /* rax = rdi + 2. The return of old AMD compilers. */
        shape   shape_rep_ret
        leaq    2(%rdi), %rax
        rep ret
        end     shape_rep_ret

        /* rax = rdi + 3 */
        shape   shape_bnd_ret
        leaq    3(%rdi), %rax
        bnd ret
        end     shape_bnd_ret

        /* rax = rdi + (CF ? 1 : ZF ? 2 : 3): three returns. */
        shape   shape_rets
        jc      1f
        jz      2f
        leaq    3(%rdi), %rax
        ret
1:      leaq    1(%rdi), %rax
        ret
2:      leaq    2(%rdi), %rax
        ret
        end     shape_rets

        /* rax = CF ? rax : rdi + 4: a jump to the return itself. */
        shape   shape_target_ret
        jc      1f
        leaq    4(%rdi), %rax
1:      ret
        end     shape_target_ret

        /* The same with a 1-byte instruction between target and return. */
        adjoin  shape_target_1
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        jc      1f
        leaq    4(%rdi), %rax
1:      popq    %rbx
        .cfi_adjust_cfa_offset -8
        ret
        end     shape_target_1

        /* … with one of 2 bytes. */
        adjoin  shape_target_2
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        jc      1f
        leaq    4(%rdi), %rax
1:      popq    %r12
        .cfi_adjust_cfa_offset -8
        ret
        end     shape_target_2

        /* rax = rdi: … 3 bytes. */
        adjoin  shape_target_3
        jc      1f
        leaq    4(%rdi), %rax
1:      movq    %rdi, %rax
        ret
        end     shape_target_3

        /* rax = rdi + 5: … 4 bytes. */
        adjoin  shape_target_4
        jc      1f
        leaq    4(%rdi), %rax
1:      leaq    5(%rdi), %rax
        ret
        end     shape_target_4

        /* rax = rdi: a call right before the return: the return address must
           not fall inside a window. */
        adjoin  shape_call_ret
        leaq    8(%rdi), %rax
        call    tiny_move
        ret
        end     shape_call_ret

/* --- Very small functions without padding ------------------------------- */

        adjoin  tiny_ret_a
        ret
        end     tiny_ret_a
        adjoin  tiny_ret_b
        ret
        end     tiny_ret_b
        adjoin  tiny_move               /* rax = rdi */
        movq    %rdi, %rax
        ret
        end     tiny_move
        adjoin  tiny_lea                /* rax = rdi + 9 */
        leaq    9(%rdi), %rax
        ret
        end     tiny_lea
        adjoin  tiny_nop
        nop
        ret
        end     tiny_nop
        adjoin  tiny_jmp                /* rax = rdi + 9 */
        jmp     tiny_lea
        end     tiny_jmp
        adjoin  tiny_last
        ret
        end     tiny_last

/* --- Tail jumps --------------------------------------------------------- */

        /* rax = rdi + 9 */
        shape   shape_tail_short
        leaq    1(%rdi), %rdi
        leaq    -1(%rdi), %rdi
        jmp     tiny_lea
        end     shape_tail_short

        /* rax = rdi + 1 */
        shape   shape_tail_near
        leaq    7(%rax), %rax
        jmp     shape_far
        end     shape_tail_near

        /* rax = rdi + 1 */
        shape   shape_tail_memory
        leaq    7(%rax), %rax
        jmp     *shape_pointer(%rip)
        end     shape_tail_memory

        /* rax = rdi + 1 */
        shape   shape_tail_register
        movq    shape_pointer(%rip), %rax
        jmp     *%rax
        end     shape_tail_register

        /* rax = rdi + 1 */
        shape   shape_tail_notrack
        movq    shape_pointer(%rip), %rax
        notrack jmp *%rax
        end     shape_tail_notrack

        /* rax = CF ? rdi + 9 : rdi + 4. A conditional tail jump, short. */
        shape   shape_tail_jcc_short
        jc      tiny_lea_near
        leaq    4(%rdi), %rax
        ret
        end     shape_tail_jcc_short
        adjoin  tiny_lea_near
        leaq    9(%rdi), %rax
        ret
        end     tiny_lea_near

        /* rax = CF ? rdi + 1 : rdi + 4 … near. */
        shape   shape_tail_jcc_near
        jc      shape_far
        leaq    4(%rdi), %rax
        ret
        end     shape_tail_jcc_near

        /* rax = rdi + 1. Nothing but a tail jump. */
        shape   shape_tail_only
        jmp     shape_far
        end     shape_tail_only

        /* rax = rdi + 1. The return that is a jump: retpolines end so. */
        shape   shape_push_ret
        pushq   shape_pointer(%rip)
        .cfi_adjust_cfa_offset 8
        ret
        .cfi_adjust_cfa_offset -8
        end     shape_push_ret

        /* rax = rdi + 1, r11 = the address of shape_far. */
        shape   shape_retpoline
        movq    shape_pointer(%rip), %r11
        call    2f
1:      pause
        lfence
        jmp     1b
2:      .cfi_adjust_cfa_offset 8
        movq    %r11, (%rsp)
        ret
        .cfi_adjust_cfa_offset -8
        end     shape_retpoline

        /* rax = rdi + 12: no exit of its own, runs into the next function. */
        shape   shape_falls
        leaq    12(%rdi), %rax
        end     shape_falls
        adjoin  shape_fallen_into
        leaq    (%rax), %rax
        ret
        end     shape_fallen_into

        /* rax = rdi + 1: jumps behind the first instruction of another. */
        shape   shape_into_middle
        leaq    1(%rdi), %rax
        jmp     shape_padded+4
        end     shape_into_middle

/* --- Entries ------------------------------------------------------------ */

        /* rax = rdi + 1 */
        shape   shape_endbr
        endbr64
        leaq    1(%rdi), %rax
        ret
        end     shape_endbr

        /* rax += 3 * rcx, rcx = 0: the entry is the head of a loop. rcx > 0. */
        shape   shape_loop
        leaq    3(%rax), %rax
        loop    shape_loop
        ret
        end     shape_loop

        /* The same with jrcxz and a jump. */
        shape   shape_loop_jmp
        leaq    3(%rax), %rax
        leaq    -1(%rcx), %rcx
        jrcxz   1f
        jmp     shape_loop_jmp
1:      ret
        end     shape_loop_jmp

        /* rax = rcx == 0 ? rdi + 1 : rdi + 4: jrcxz first. */
        shape   shape_jrcxz_first
        jrcxz   1f
        leaq    4(%rdi), %rax
        ret
1:      leaq    1(%rdi), %rax
        ret
        end     shape_jrcxz_first

        /* rax = rdi + 2: a call first. */
        shape   shape_call_first
        call    tiny_move
        leaq    2(%rax), %rax
        ret
        end     shape_call_first

        /* rax = rdi + 2: a call in the second instruction. */
        shape   shape_call_second
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        call    tiny_move
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        leaq    2(%rax), %rax
        ret
        end     shape_call_second

        /* rax = rdi + 1: a call through memory first. */
        shape   shape_call_memory_first
        call    *shape_pointer(%rip)
        ret
        end     shape_call_memory_first

        /* rax = shape_constant: an operand relative to rip first. */
        shape   shape_rip_first
        movq    shape_constant(%rip), %rax
        ret
        end     shape_rip_first

        /* rax = the address of shape_constant, with an immediate behind. */
        shape   shape_rip_lea
        leaq    shape_constant(%rip), %rax
        ret
        end     shape_rip_lea

        /* shape_sink is written: displacement and immediate in one. */
        shape   shape_rip_immediate
        movl    $0x12345678, shape_sink(%rip)
        ret
        end     shape_rip_immediate

        /* xmm0 = shape_vector: VEX and rip; only with AVX. */
        shape   shape_rip_vex
        vmovdqu shape_vector(%rip), %ymm0
        ret
        end     shape_rip_vex

        /* rax = CF ? rdi + 1 : rdi + 4: a short jcc within 5 bytes. */
        shape   shape_jcc_first
        jc      1f
        nop
        nop
        leaq    4(%rdi), %rax
        ret
1:      leaq    1(%rdi), %rax
        ret
        end     shape_jcc_first

        /* The same: the target within the first 5 bytes. */
        shape   shape_target_in_entry
        jnc     1f
        jmp     2f
1:      leaq    4(%rdi), %rax
        ret
2:      leaq    1(%rdi), %rax
        ret
        end     shape_target_in_entry

        /* rax = rdi + 1: a short jump first. */
        shape   shape_jmp_first
        jmp     1f
        ud2
1:      leaq    1(%rdi), %rax
        ret
        end     shape_jmp_first

        /* rax = rdi + 1: the stack pointer moves in the first instruction. */
        shape   shape_enter
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        movq    %rsp, %rbp
        leaq    1(%rdi), %rax
        leave
        .cfi_adjust_cfa_offset -8
        ret
        end     shape_enter

        /* rax = shape_constant: the stack argument that state_call passes. */
        shape   shape_stack_argument
        movq    8(%rsp), %rax
        ret
        end     shape_stack_argument

        /* rax = rdi + 1: the red zone is used. */
        shape   shape_red_zone
        movq    %rdi, -8(%rsp)
        movq    %rsi, -128(%rsp)
        leaq    shape_constant(%rip), %rax
        movq    -8(%rsp), %rax
        leaq    1(%rax), %rax
        xchgq   %rsi, -128(%rsp)
        ret
        end     shape_red_zone

/* --- Inside ------------------------------------------------------------- */

        /* rax = rdi + 10 * (rcx + 1), rcx < 4; rdx, flags changed. */
        shape   shape_jump_table
        cmpq    $3, %rcx
        ja      9f
        leaq    shape_table(%rip), %rdx
        movslq  (%rdx,%rcx,4), %rax
        addq    %rdx, %rax
        notrack jmp *%rax
1:      leaq    10(%rdi), %rax
        ret
2:      leaq    20(%rdi), %rax
        ret
3:      leaq    30(%rdi), %rax
        ret
4:      leaq    40(%rdi), %rax
        ret
9:      ud2
        end     shape_jump_table

        .section .rodata
        .p2align 2
shape_table:
        .long   1b-shape_table, 2b-shape_table, 3b-shape_table, 4b-shape_table
        .text

        /* rax = CF ? rdi + 30 : rdi + 4: a cold part that comes back. */
        shape   shape_cold
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbx, 0
        jc      shape_cold.cold
        leaq    4(%rdi), %rax
1:      popq    %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbx
        ret
        end     shape_cold

        .section .text.unlikely, "ax", @progbits
        .type   shape_cold.cold, @function
shape_cold.cold:
        .cfi_startproc
        .cfi_def_cfa_offset 16
        .cfi_offset rbx, -16
        leaq    30(%rdi), %rax
        jmp     1b
        .cfi_endproc
        .size   shape_cold.cold, .-shape_cold.cold

        /* A cold part that holds an exit of its own. */
        .type   shape_cold_exit.cold, @function
shape_cold_exit.cold:
        .cfi_startproc
        .cfi_def_cfa_offset 16
        .cfi_offset rbx, -16
        leaq    30(%rdi), %rax
        popq    %rbx
        .cfi_def_cfa_offset 8
        .cfi_restore rbx
        ret
        .cfi_endproc
        .size   shape_cold_exit.cold, .-shape_cold_exit.cold
        .text

        /* rax = CF ? rdi + 30 : rdi + 4 */
        shape   shape_cold_exit
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbx, 0
        jc      shape_cold_exit.cold
        leaq    4(%rdi), %rax
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbx
        ret
        end     shape_cold_exit

        /* Two names for one function. rax = rdi + 1 */
        .p2align 4
        .globl  shape_alias
        .type   shape_alias, @function
shape_alias:
        adjoin  shape_aliased
        leaq    1(%rdi), %rax
        ret
        end     shape_aliased
        .size   shape_alias, .-shape_alias

/* --- Markers (SDT) in the middle of functions ----------------------------- */

        /* The note that SystemTap's sdt.h makes of a marker here. */
        .macro  note name, args
        .pushsection .note.stapsdt, "", "note"
        .balign 4
        .4byte  8, 9993f-9992f, 3
        .asciz  "stapsdt"
        .balign 4
9992:   .8byte  9990b, 0, 0
        .asciz  "shapes"
        .asciz  "\name"
        .asciz  "\args"
9993:   .balign 4
        .popsection
        .endm

        .macro  mark name, args
9990:   nop
        note    \name, "\args"
        .endm

        .macro  mark5 name, args
9990:   .byte   0x0f, 0x1f, 0x44, 0, 0
        note    \name, "\args"
        .endm

        /* A nop of one byte, then of five, between moves. */
        shape   shape_mark
        movq    %rax, %rax
        mark    plain, "8@%rax -4@%edi 1@%ah 2@%si 8@$-5 8f@%xmm3 8@%rsp 8@(%rsp)"
        movq    %rbx, %rbx
        mark5   five, "8@%rcx 8@%rdx"
        ret
        end     shape_mark

        /* All that is below the stack pointer is the function's. */
        shape   shape_mark_red_zone
        movq    %rdi, -8(%rsp)
        movq    %rsi, -40(%rsp)
        movq    %r8, -64(%rsp)
        movq    %r9, -96(%rsp)
        movq    %r10, -120(%rsp)
        movq    %r11, -128(%rsp)
        mark    red, "8@-8(%rsp) 8@-128(%rsp) 4@-40(%rsp)"
        movq    -8(%rsp), %rdi
        movq    -40(%rsp), %rsi
        movq    -64(%rsp), %r8
        mark5   zone, "8@-96(%rsp)"
        movq    -96(%rsp), %r9
        movq    -120(%rsp), %r10
        movq    -128(%rsp), %r11
        ret
        end     shape_mark_red_zone

        /* rax = rdi + 4 unless CF: the jump is moved. */
        shape   shape_mark_jcc
        mark    jcc, ""
        jc      1f
        leaq    4(%rdi), %rax
1:      ret
        end     shape_mark_jcc

        /* rax = rdi + 1: what follows is jumped to, so the jump before is moved. */
        shape   shape_mark_over
        jc      1f
        mark    over, "8@%rdi"
1:      leaq    1(%rdi), %rax
        ret
        end     shape_mark_over

        /* rax = rdi + 5: the nop and what follows are both jumped to. */
        shape   shape_mark_between
        jz      3f
        jc      2f
1:      mark    between, ""
2:      leaq    5(%rdi), %rax
        ret
3:      jmp     1b
        end     shape_mark_between

        /* rax = rdi + 1: in front of a call, and behind it. */
        shape   shape_mark_call
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        mark    before, "8@%rdi 8@(%rsp)"
        call    shape_far
        mark    behind, "8@%rax"
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        ret
        end     shape_mark_call

        /* rax = rdi + 1: in front of a tail call. */
        shape   shape_mark_tail
        mark    tail, ""
        jmp     shape_far
        end     shape_mark_tail

        /* Nothing but a marker. */
        shape   shape_mark_only
        mark    only, "8@%r15"
        ret
        end     shape_mark_only

/* --- Far away, so that jumps to it take 32 bits -------------------------- */

        .skip   4096, 0xcc
        /* rax = rdi + 1 */
        shape   shape_far
        leaq    1(%rdi), %rax
        ret
        end     shape_far

        .data
        .p2align 5
        .globl  shape_pointer, shape_sink
shape_pointer:
        .quad   shape_far
shape_sink:
        .quad   0
        .section .rodata
        .p2align 5
        .globl  shape_constant, shape_vector
shape_vector:
        .quad   0x0123456789abcdef, 0x1122334455667788
        .quad   0x99aabbccddeeff00, 0x0f1e2d3c4b5a6978
shape_constant:
        .quad   0x5eed5eed5eed5eed
        .section .note.GNU-stack, "", @progbits
