/*
 * state [THREADS]: state.c for arm64. It calls functions of every shape with
 * every register holding a random pattern, and compares every register after
 * the call, and in the callees that look, at the entry, until stdin ends.
 *
 * Not compared are x16 and x17, which a call may change, and x30.
 */
#define _GNU_SOURCE
#include "target.h"
#include "state_arm64.h"
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>

#define N (1ul << 31)
#define Z (1ul << 30)
#define C (1ul << 29)
#define FPCR_BITS 0x03c00000ul /* rounding, flushing, the default NaN */
#define FPSR_BITS 0x0800009ful /* saturation, exceptions that came */
#ifndef HWCAP_PACA
#define HWCAP_PACA (1 << 30)
#endif

__thread struct block state_block;

static atomic_int stop;
static atomic_uint_fast64_t total_rounds, total_calls;

extern const uint64_t shape_constant[2];

struct shape {
    const char *name;
    void (*code)(void);
    /* Changes want, a copy of what was loaded, to what the shape leaves. */
    void (*expect)(const struct regs *in, struct regs *want, uint64_t k);
    uint64_t k;
    uint64_t x1_mask; /* when not 0: x1 & mask, and x1_least more */
    uint64_t x1_least;
    uint32_t lost; /* registers that the shape changes, a bit each */
    int pac;       /* it has instructions of such processors only */
};

static void keeps(const struct regs *in, struct regs *want, uint64_t k)
{
    (void)in, (void)want, (void)k;
}

static void plus(const struct regs *in, struct regs *want, uint64_t k)
{
    want->x[0] = in->x[0] + k;
}

/* k holds two addends: the low 8 bits where it is so, the next 8 where not. */
static void by_carry(const struct regs *in, struct regs *want, uint64_t k)
{
    want->x[0] = in->x[0] + (in->nzcv & C ? k & 0xff : k >> 8);
}

static void by_zero(const struct regs *in, struct regs *want, uint64_t k)
{
    want->x[0] = in->x[0] + (in->nzcv & Z ? k & 0xff : k >> 8);
}

static void by_x1(const struct regs *in, struct regs *want, uint64_t k)
{
    want->x[0] = in->x[0] + (in->x[1] == 0 ? k & 0xff : k >> 8);
}

static void by_x1_low(const struct regs *in, struct regs *want, uint64_t k)
{
    want->x[0] = in->x[0] + ((in->x[1] & 1) == 0 ? k & 0xff : k >> 8);
}

static void by_x2_high(const struct regs *in, struct regs *want, uint64_t k)
{
    want->x[0] = in->x[0] + (in->x[2] >> 63 ? k & 0xff : k >> 8);
}

static void loops(const struct regs *in, struct regs *want, uint64_t k)
{
    want->x[0] = in->x[0] + k * in->x[1];
    want->x[1] = 0;
    want->nzcv = Z | C;
}

static void by_table(const struct regs *in, struct regs *want, uint64_t k)
{
    want->x[1] = in->x[1] & 3;
    want->x[0] = in->x[0] + k * (want->x[1] + 1);
}

static void address(const struct regs *in, struct regs *want, uint64_t k)
{
    (void)in, (void)k;
    want->x[0] = (uintptr_t)shape_constant;
}

static void constant(const struct regs *in, struct regs *want, uint64_t k)
{
    (void)in;
    want->x[0] = k == 8 ? shape_constant[0] : k == 4 ? (uint32_t)shape_constant[0] : (uint64_t)(int32_t)shape_constant[0];
}

static void vector(const struct regs *in, struct regs *want, uint64_t k)
{
    (void)in, (void)k;
    memcpy(want->v[0], shape_constant, 16);
}

static void exits(const struct regs *in, struct regs *want, uint64_t k)
{
    (void)in, (void)k;
    *want = state_block.exit;
}

#define LIST(X)                                                               \
    X(shape_ret, keeps, 0)                                                    \
    X(shape_plus, plus, 1)                                                    \
    X(shape_by_carry, by_carry, 4 | 9 << 8)                                   \
    X(shape_cbz, by_x1, 2 | 1 << 8, .x1_mask = 1)                             \
    X(shape_cbnz_w, by_x1, 2 | 1 << 8, .x1_mask = 1)                          \
    X(shape_tbz, by_x1_low, 2 | 1 << 8)                                       \
    X(shape_tbnz_high, by_x2_high, 2 | 1 << 8)                                \
    X(shape_adr, address, 0)                                                  \
    X(shape_adrp, address, 0)                                                 \
    X(shape_literal, constant, 8)                                             \
    X(shape_literal_w, constant, 4)                                           \
    X(shape_literal_sw, constant, 0)                                          \
    X(shape_literal_q, vector, 0)                                             \
    X(shape_prefetch, plus, 1)                                                \
    X(shape_tail, plus, 2)                                                    \
    X(shape_tail_only, plus, 1)                                               \
    X(shape_tail_cond, by_zero, 1 | 5 << 8)                                   \
    X(shape_tail_cbz, by_x1, 1 | 5 << 8, .x1_mask = 1)                        \
    X(shape_tail_tbnz, by_x1_low, 5 | 1 << 8)                                 \
    X(shape_tail_register, plus, 1)                                           \
    X(shape_loop, loops, 3, .x1_mask = 7, .x1_least = 1)                      \
    X(shape_loop_behind, loops, 3, .x1_mask = 7, .x1_least = 1)               \
    X(shape_frame, plus, 1)                                                   \
    X(shape_signed, plus, 1)                                                  \
    X(shape_signed_tail, plus, 2)                                             \
    X(shape_retaa, plus, 1, .pac = 1)                                         \
    X(shape_bti, plus, 1)                                                     \
    X(shape_ret_other, keeps, 0, .lost = 1 << 9)                              \
    X(shape_switch, by_table, 10, .lost = 1 << 9)                             \
    X(shape_stack, keeps, 0)                                                  \
    X(shape_cold, by_carry, 4 | 9 << 8)                                       \
    X(state_seer, exits, 0)                                                   \
    X(state_seer_bti, exits, 0)                                               \
    X(state_seer_tail, exits, 0)

#define DECLARE(f, e, ...) void f(void);
LIST(DECLARE)

#define ENTRY(f, e, ...) {.name = #f, .code = f, .expect = e, .k = __VA_ARGS__},
static const struct shape shapes[] = {LIST(ENTRY)};

static void fill(struct regs *r, uint64_t *seed)
{
    for (size_t i = 0; i < sizeof *r / 8; i++)
        ((uint64_t *)r)[i] = target_random(seed);
    r->nzcv &= 0xf0000000;
    r->fpcr &= FPCR_BITS;
    r->fpsr &= FPSR_BITS;
}

__attribute__((noreturn)) static void differs(const struct shape *s, const char *where, const char *what, int n, uint64_t got, uint64_t want)
{
    fprintf(stderr, "state_arm64.c: %s: at its %s, %s%d is %#lx, want %#lx\n", s->name, where, what, n, got, want);
    exit(1);
}

static void compare(const struct shape *s, const char *where, const struct regs *got, const struct regs *want)
{
    for (int i = 0; i < 30; i++)
        if (got->x[i] != want->x[i] && i != 16 && i != 17 && !(s->lost >> i & 1))
            differs(s, where, "x", i, got->x[i], want->x[i]);
    if (got->sp != state_block.sp)
        differs(s, where, "sp", 0, got->sp, state_block.sp);
    if (got->nzcv != want->nzcv)
        differs(s, where, "nzcv", 0, got->nzcv, want->nzcv);
    if (got->fpcr != want->fpcr)
        differs(s, where, "fpcr", 0, got->fpcr, want->fpcr);
    if (got->fpsr != want->fpsr)
        differs(s, where, "fpsr", 0, got->fpsr, want->fpsr);
    for (int i = 0; i < 32; i++)
        for (int half = 0; half < 2; half++)
            if (got->v[i][half] != want->v[i][half])
                differs(s, where, "v", i, got->v[i][half], want->v[i][half]);
}

static void call_one(const struct shape *s, uint64_t *seed)
{
    struct block *b = &state_block;
    struct regs want;

    fill(&b->in, seed);
    fill(&b->exit, seed);
    if (s->x1_mask)
        b->in.x[1] = (b->in.x[1] & s->x1_mask) + s->x1_least;
    memset(&b->out, 0, sizeof b->out);
    memset(&b->seen, 0, sizeof b->seen);
    b->callee = s->code;
    state_call();

    want = b->in;
    s->expect(&b->in, &want, s->k);
    compare(s, "return", &b->out, &want);
    if (s->expect == exits)
        compare(s, "entry", &b->seen, &b->in);
}

static void *thread_main(void *arg)
{
    uint64_t seed = (uint64_t)(uintptr_t)arg * 0x1234567 + 1, calls = 0, n;
    int pac = (getauxval(AT_HWCAP) & HWCAP_PACA) != 0;
    for (n = 0; !stop; n++)
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            if (!shapes[i].pac || pac)
                call_one(&shapes[i], &seed), calls++;
    atomic_fetch_add(&total_rounds, n);
    atomic_fetch_add(&total_calls, calls);
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 2;
    pthread_t t[64];
    if (threads < 1 || threads > 64)
        threads = 2;
    _Static_assert(sizeof(struct regs) == REGS_SIZE, "layout");
    _Static_assert(__builtin_offsetof(struct regs, sp) == REGS_SP, "layout");
    _Static_assert(__builtin_offsetof(struct regs, fpsr) == REGS_FPSR, "layout");
    _Static_assert(__builtin_offsetof(struct regs, v) == REGS_V, "layout");
    _Static_assert(__builtin_offsetof(struct block, callee) == BLOCK_CALLEE, "layout");
    _Static_assert(__builtin_offsetof(struct block, sp) == BLOCK_SP, "layout");

    target_ready();
    for (int i = 0; i < threads; i++)
        CHECK(pthread_create(&t[i], NULL, thread_main, (void *)(uintptr_t)(i + 1)) == 0);
    target_wait_line();
    stop = 1;
    for (int i = 0; i < threads; i++)
        pthread_join(t[i], NULL);
    printf("state rounds=%llu calls=%llu ok\n", (unsigned long long)total_rounds, (unsigned long long)total_calls);
    return 0;
}
