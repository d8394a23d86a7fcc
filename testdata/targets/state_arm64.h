/*
 * The layout that state_arm64.c and state_arm64.S share: every register of a
 * thread, and a thread-local block of four such sets. It is reached through x16
 * and x17, which are nobody's at a call and at a return (AAPCS64, 6.1.1).
 */
#ifndef STATE_ARM64_H
#define STATE_ARM64_H

#define REGS_SP 256   /* after x0 … x30 */
#define REGS_NZCV 264
#define REGS_FPCR 272
#define REGS_FPSR 280
#define REGS_V 288    /* 32 × 16 bytes */
#define REGS_SIZE 800

#define BLOCK_IN 0                 /* loaded before the call */
#define BLOCK_SEEN REGS_SIZE       /* what the callee found at its entry */
#define BLOCK_EXIT (2 * REGS_SIZE) /* what the callee loads before it returns */
#define BLOCK_OUT (3 * REGS_SIZE)  /* what the caller found after the call */
#define BLOCK_CALLEE (4 * REGS_SIZE)
#define BLOCK_SP (4 * REGS_SIZE + 8) /* sp before the call */

#ifndef __ASSEMBLER__
#include <stdint.h>

struct regs {
    uint64_t x[32]; /* the last is of no use */
    uint64_t sp, nzcv, fpcr, fpsr;
    uint64_t v[32][2];
};

struct block {
    struct regs in, seen, exit, out;
    void (*callee)(void);
    uint64_t sp;
};

extern __thread struct block state_block;

/* Loads in, calls callee, stores out. */
void state_call(void);

/* Callees that store seen, load exit and return: plainly, behind a bti, by a
 * tail jump. */
void state_seer(void);
void state_seer_bti(void);
void state_seer_tail(void);
#endif
#endif
