/*
 * Loads every register with a pattern, calls, and stores every register again;
 * and functions of every shape that there is something to say about.
 */
#include "state_arm64.h"

        .arch   armv8.3-a

        /* x16 is where the block is, x17 is lost; flags are kept. */
        .macro  block
        mrs     x16, tpidr_el0
        add     x16, x16, #:tprel_hi12:state_block, lsl #12
        add     x16, x16, #:tprel_lo12_nc:state_block
        .endm

        .macro  store_all area
        mrs     x17, nzcv
        block
        add     x16, x16, #\area
        str     x17, [x16, #REGS_NZCV]
        .irp    n, 0, 2, 4, 6, 8, 10, 12, 14
        pair    stp, \n
        .endr
        str     x18, [x16, #18*8]
        str     x19, [x16, #19*8]
        .irp    n, 20, 22, 24, 26, 28
        pair    stp, \n
        .endr
        str     x30, [x16, #30*8]
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
        str     q\n, [x16, #REGS_V+\n*16]
        .endr
        mov     x17, sp
        str     x17, [x16, #REGS_SP]
        mrs     x17, fpcr
        str     x17, [x16, #REGS_FPCR]
        mrs     x17, fpsr
        str     x17, [x16, #REGS_FPSR]
        .endm

        /* All but x30 and sp. */
        .macro  load_all area
        block
        add     x16, x16, #\area
        ldr     x17, [x16, #REGS_FPCR]
        msr     fpcr, x17
        ldr     x17, [x16, #REGS_FPSR]
        msr     fpsr, x17
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
        ldr     q\n, [x16, #REGS_V+\n*16]
        .endr
        ldr     x17, [x16, #REGS_NZCV]
        msr     nzcv, x17
        .irp    n, 0, 2, 4, 6, 8, 10, 12, 14
        pair    ldp, \n
        .endr
        ldr     x18, [x16, #18*8]
        ldr     x19, [x16, #19*8]
        .irp    n, 20, 22, 24, 26, 28
        pair    ldp, \n
        .endr
        .endm

        .macro  pair how, n
        .if     \n == 0
        \how    x0, x1, [x16, #0]
        .elseif \n == 2
        \how    x2, x3, [x16, #16]
        .elseif \n == 4
        \how    x4, x5, [x16, #32]
        .elseif \n == 6
        \how    x6, x7, [x16, #48]
        .elseif \n == 8
        \how    x8, x9, [x16, #64]
        .elseif \n == 10
        \how    x10, x11, [x16, #80]
        .elseif \n == 12
        \how    x12, x13, [x16, #96]
        .elseif \n == 14
        \how    x14, x15, [x16, #112]
        .elseif \n == 20
        \how    x20, x21, [x16, #160]
        .elseif \n == 22
        \how    x22, x23, [x16, #176]
        .elseif \n == 24
        \how    x24, x25, [x16, #192]
        .elseif \n == 26
        \how    x26, x27, [x16, #208]
        .else
        \how    x28, x29, [x16, #224]
        .endif
        .endm

        .macro  function name
        .p2align 2
        .globl  \name
        .type   \name, %function
\name:
        .cfi_startproc
        .endm

        .macro  end name
        .cfi_endproc
        .size   \name, .-\name
        .endm

        .macro  frame
        stp     x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        .endm

        .macro  unframe
        ldp     x29, x30, [sp], #16
        .cfi_def_cfa_offset 0
        .cfi_restore x29
        .cfi_restore x30
        .endm

        .text
        function state_call
        stp     x29, x30, [sp, #-176]!
        .cfi_def_cfa_offset 176
        .cfi_offset x29, -176
        .cfi_offset x30, -168
        stp     x19, x20, [sp, #16]
        stp     x21, x22, [sp, #32]
        stp     x23, x24, [sp, #48]
        stp     x25, x26, [sp, #64]
        stp     x27, x28, [sp, #80]
        stp     d8, d9, [sp, #96]
        stp     d10, d11, [sp, #112]
        stp     d12, d13, [sp, #128]
        stp     d14, d15, [sp, #144]
        mrs     x9, fpcr
        str     x9, [sp, #160]
        str     x18, [sp, #168]
        block
        mov     x9, sp
        str     x9, [x16, #BLOCK_SP]
        load_all BLOCK_IN
        ldr     x17, [x16, #BLOCK_CALLEE]
        blr     x17
        store_all BLOCK_OUT
        block
        ldr     x9, [x16, #BLOCK_SP]
        mov     sp, x9
        ldr     x18, [sp, #168]
        ldr     x9, [sp, #160]
        msr     fpcr, x9
        ldp     d14, d15, [sp, #144]
        ldp     d12, d13, [sp, #128]
        ldp     d10, d11, [sp, #112]
        ldp     d8, d9, [sp, #96]
        ldp     x27, x28, [sp, #80]
        ldp     x25, x26, [sp, #64]
        ldp     x23, x24, [sp, #48]
        ldp     x21, x22, [sp, #32]
        ldp     x19, x20, [sp, #16]
        ldp     x29, x30, [sp], #176
        .cfi_def_cfa_offset 0
        ret
        end     state_call

        function state_seer
        store_all BLOCK_SEEN
        load_all BLOCK_EXIT
        ret
        end     state_seer

        function state_seer_bti
        hint    #34                     /* bti c */
        store_all BLOCK_SEEN
        load_all BLOCK_EXIT
        ret
        end     state_seer_bti

        function state_seer_tail
        store_all BLOCK_SEEN
        load_all BLOCK_EXIT
        b       shape_ret
        end     state_seer_tail

        function shape_ret
        ret
        end     shape_ret

        function shape_plus
        add     x0, x0, #1
        ret
        end     shape_plus

        function shape_by_carry
        b.cs    1f
        add     x0, x0, #9
        ret
1:      add     x0, x0, #4
        ret
        end     shape_by_carry

        function shape_cbz
        cbz     x1, 1f
        add     x0, x0, #1
        ret
1:      add     x0, x0, #2
        ret
        end     shape_cbz

        function shape_cbnz_w
        cbnz    w1, 1f
        add     x0, x0, #2
        ret
1:      add     x0, x0, #1
        ret
        end     shape_cbnz_w

        function shape_tbz
        tbz     x1, #0, 1f
        add     x0, x0, #1
        ret
1:      add     x0, x0, #2
        ret
        end     shape_tbz

        function shape_tbnz_high
        tbnz    x2, #63, 1f
        add     x0, x0, #1
        ret
1:      add     x0, x0, #2
        ret
        end     shape_tbnz_high

        function shape_adr
        adr     x0, shape_constant
        ret
        end     shape_adr

        function shape_adrp
        adrp    x0, shape_constant
        add     x0, x0, #:lo12:shape_constant
        ret
        end     shape_adrp

        function shape_literal
        ldr     x0, shape_constant
        ret
        end     shape_literal

        function shape_literal_w
        ldr     w0, shape_constant
        ret
        end     shape_literal_w

        function shape_literal_sw
        ldrsw   x0, shape_constant
        ret
        end     shape_literal_sw

        function shape_literal_q
        ldr     q0, shape_constant
        ret
        end     shape_literal_q

        function shape_prefetch
        prfm    pldl1keep, shape_constant
        add     x0, x0, #1
        ret
        end     shape_prefetch

        .p2align 4
        .globl  shape_constant
        .type   shape_constant, %object
shape_constant:
        .quad   0x8badf00d87654321, 0x1122334455667788
        .size   shape_constant, .-shape_constant

        function shape_tail
        add     x0, x0, #1
        b       shape_plus
        end     shape_tail

        function shape_tail_only
        b       shape_plus
        end     shape_tail_only

        function shape_tail_cond
        b.eq    shape_plus
        add     x0, x0, #5
        ret
        end     shape_tail_cond

        function shape_tail_cbz
        cbz     x1, shape_plus
        add     x0, x0, #5
        ret
        end     shape_tail_cbz

        function shape_tail_tbnz
        tbnz    x1, #0, shape_plus
        add     x0, x0, #5
        ret
        end     shape_tail_tbnz

        function shape_tail_register
        adrp    x16, shape_plus
        add     x16, x16, #:lo12:shape_plus
        br      x16
        end     shape_tail_register

        function shape_loop
        add     x0, x0, #3
        subs    x1, x1, #1
        b.ne    shape_loop
        ret
        end     shape_loop

        function shape_loop_behind
        nop
1:      add     x0, x0, #3
        subs    x1, x1, #1
        b.ne    1b
        ret
        end     shape_loop_behind

        function shape_frame
        frame
        bl      shape_plus
        unframe
        ret
        end     shape_frame

        function shape_signed
        hint    #25                     /* paciasp */
        .cfi_negate_ra_state
        frame
        bl      shape_plus
        unframe
        hint    #29                     /* autiasp */
        .cfi_negate_ra_state
        ret
        end     shape_signed

        function shape_signed_tail
        hint    #27                     /* pacibsp */
        .cfi_b_key_frame
        .cfi_negate_ra_state
        frame
        bl      shape_plus
        unframe
        hint    #31                     /* autibsp */
        .cfi_negate_ra_state
        b       shape_plus
        end     shape_signed_tail

        function shape_retaa
        paciasp
        .cfi_negate_ra_state
        frame
        bl      shape_plus
        unframe
        retaa
        end     shape_retaa

        function shape_bti
        hint    #34
        add     x0, x0, #1
        ret
        end     shape_bti

        function shape_ret_other
        mov     x9, x30
        ret     x9
        end     shape_ret_other

        function shape_switch
        and     x1, x1, #3
        adr     x9, 5f
        add     x9, x9, x1, lsl #3
        br      x9
5:      add     x0, x0, #10
        ret
        add     x0, x0, #20
        ret
        add     x0, x0, #30
        ret
        add     x0, x0, #40
        ret
        end     shape_switch

        function shape_stack
        sub     sp, sp, #32
        .cfi_def_cfa_offset 32
        str     x0, [sp, #8]
        ldr     x0, [sp, #8]
        add     sp, sp, #32
        .cfi_def_cfa_offset 0
        ret
        end     shape_stack

        function shape_cold
        b.cs    shape_cold_part
        add     x0, x0, #9
        ret
        .cfi_endproc
        .size   shape_cold, .-shape_cold

        .section .text.unlikely, "ax", %progbits
        .type   shape_cold.cold, %function
        .p2align 2
shape_cold.cold:
        .cfi_startproc
shape_cold_part:
        add     x0, x0, #4
        ret
        .cfi_endproc
        .size   shape_cold.cold, .-shape_cold.cold

        .section .note.GNU-stack, "", %progbits
