/*
 * The layout that state.c and state.S share: every register of a thread, and a
 * thread-local block of four such sets. The block is reached through fs, so
 * that no general register is needed to load or to store them all.
 */
#ifndef STATE_H
#define STATE_H

#define REGS_RSP 120   /* after rax rbx rcx rdx rsi rdi rbp r8 … r15 */
#define REGS_FLAGS 128 /* rflags */
#define REGS_FX 192    /* fxsave64: x87, mxcsr, xmm0 … xmm15 */
#define REGS_ZMM 704   /* 32 × 64 bytes; as many and as wide as there are */
#define REGS_K 2752    /* k0 … k7 */
#define REGS_SIZE 2816

#define BLOCK_IN 0                  /* loaded before the call */
#define BLOCK_SEEN REGS_SIZE        /* what the callee found at its entry */
#define BLOCK_EXIT (2 * REGS_SIZE)  /* what the callee loads before it returns */
#define BLOCK_OUT (3 * REGS_SIZE)   /* what the caller found after the call */
#define BLOCK_CALLEE (4 * REGS_SIZE)
#define BLOCK_RSP (4 * REGS_SIZE + 8)   /* rsp before the call */
#define BLOCK_WIDTH (4 * REGS_SIZE + 16) /* 0 SSE, 1 AVX, 2 AVX-512 */

#ifndef __ASSEMBLER__
#include <stdint.h>

enum { RAX, RBX, RCX, RDX, RSI, RDI, RBP, R8, R9, R10, R11, R12, R13, R14, R15, RSP, GPRS };

struct fx {
    uint16_t fcw, fsw;
    uint8_t ftw, reserved;
    uint16_t fop;
    uint64_t fip, fdp;
    uint32_t mxcsr, mxcsr_mask;
    uint8_t st[8][16]; /* 10 bytes of each count */
    uint8_t xmm[16][16];
    uint8_t rest[96];
};

struct regs {
    _Alignas(64) uint64_t gpr[GPRS];
    uint64_t flags;
    _Alignas(64) struct fx fx;
    uint8_t zmm[32][64];
    uint64_t k[8];
};

struct block {
    struct regs in, seen, exit, out;
    void (*callee)(void);
    uint64_t rsp;
    uint32_t width;
};

extern __thread struct block state_block;

/* Loads in, calls callee, stores out. */
void state_call(void);

/* Callees that store seen, load exit and return: plainly, behind an endbr64,
 * by a tail jump. */
void state_seer(void);
void state_seer_endbr(void);
void state_seer_tail(void);
#endif
#endif
