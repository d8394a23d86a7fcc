/*
 * state [THREADS [ROUNDS]]: calls functions of every shape with every register
 * holding a random pattern, and compares every register after the call, and in
 * the callees that look, at the entry. Until stdin ends, or ROUNDS rounds have
 * been made by each thread; those start when a line comes on stdin.
 *
 * Last line: rounds and calls made from state_call, in all threads.
 */
#define _GNU_SOURCE
#include "target.h"
#include "state.h"
#include <cpuid.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* CF PF AF ZF SF DF OF: all that a program can have an opinion on. */
#define FLAG_BITS 0xcd5u
#define CF 0x1u
#define ZF 0x40u

__thread struct block state_block;

static uint32_t width; /* as BLOCK_WIDTH */
static atomic_int stop;
static uint64_t rounds_each;
static atomic_uint_fast64_t total_rounds, total_calls;

extern const uint64_t shape_constant, shape_vector[4];
extern volatile uint32_t shape_sink;
void shape_far(void);

struct shape {
    const char *name;
    void (*code)(void);
    /* Changes want, a copy of what was loaded, to what the shape leaves. */
    void (*expect)(const struct regs *in, struct regs *want, uint64_t k);
    uint64_t k;
    uint64_t rcx_mask; /* when not 0: rcx & mask, rcx_least and up */
    uint64_t rcx_least;
    uint64_t flags_ignored;
};

static void keeps(const struct regs *in, struct regs *want, uint64_t k)
{
    (void)in, (void)want, (void)k;
}

static void plus(const struct regs *in, struct regs *want, uint64_t k)
{
    want->gpr[RAX] = in->gpr[RDI] + k;
}

/* k holds the two addends: low 8 bits with CF set, the next 8 without. */
static void by_carry(const struct regs *in, struct regs *want, uint64_t k)
{
    want->gpr[RAX] = in->gpr[RDI] + (in->flags & CF ? k & 0xff : k >> 8);
}

static void kept_by_carry(const struct regs *in, struct regs *want, uint64_t k)
{
    if (!(in->flags & CF))
        want->gpr[RAX] = in->gpr[RDI] + k;
}

static void by_rets(const struct regs *in, struct regs *want, uint64_t k)
{
    (void)k;
    want->gpr[RAX] = in->gpr[RDI] + (in->flags & CF ? 1 : in->flags & ZF ? 2 : 3);
}

static void by_rcx_zero(const struct regs *in, struct regs *want, uint64_t k)
{
    (void)k;
    want->gpr[RAX] = in->gpr[RDI] + (in->gpr[RCX] == 0 ? 1 : 4);
}

static void loops(const struct regs *in, struct regs *want, uint64_t k)
{
    want->gpr[RAX] = in->gpr[RAX] + k * in->gpr[RCX];
    want->gpr[RCX] = 0;
}

static void by_table(const struct regs *in, struct regs *want, uint64_t k)
{
    want->gpr[RAX] = in->gpr[RDI] + k * (in->gpr[RCX] + 1);
    want->gpr[RDX] = state_block.out.gpr[RDX]; /* the table's address */
}

static void retpoline(const struct regs *in, struct regs *want, uint64_t k)
{
    plus(in, want, k);
    want->gpr[R11] = (uintptr_t)shape_far;
}

static void loads_constant(const struct regs *in, struct regs *want, uint64_t k)
{
    (void)in, (void)k;
    want->gpr[RAX] = shape_constant;
}

static void loads_address(const struct regs *in, struct regs *want, uint64_t k)
{
    (void)in, (void)k;
    want->gpr[RAX] = (uintptr_t)&shape_constant;
}

static void stores(const struct regs *in, struct regs *want, uint64_t k)
{
    (void)in, (void)want, (void)k;
    CHECK(shape_sink == 0x12345678);
}

static void loads_vector(const struct regs *in, struct regs *want, uint64_t k)
{
    (void)in, (void)k;
    memcpy(want->fx.xmm[0], shape_vector, 16);
    memset(want->zmm[0], 0, sizeof want->zmm[0]); /* VEX clears what is above */
    memcpy(want->zmm[0], shape_vector, 32);
}

static void exits(const struct regs *in, struct regs *want, uint64_t k)
{
    (void)in, (void)k;
    uint64_t rsp = want->gpr[RSP];
    *want = state_block.exit;
    want->gpr[RSP] = rsp;
}

#define LIST(X)                                                               \
    X(shape_ret, keeps, 0)                                                    \
    X(shape_padded, plus, 1)                                                  \
    X(shape_rep_ret, plus, 2)                                                 \
    X(shape_bnd_ret, plus, 3)                                                 \
    X(shape_rets, by_rets, 0)                                                 \
    X(shape_target_ret, kept_by_carry, 4)                                     \
    X(shape_target_1, kept_by_carry, 4)                                       \
    X(shape_target_2, kept_by_carry, 4)                                       \
    X(shape_target_3, plus, 0)                                                \
    X(shape_target_4, plus, 5)                                                \
    X(shape_call_ret, plus, 0)                                                \
    X(tiny_ret_a, keeps, 0)                                                   \
    X(tiny_ret_b, keeps, 0)                                                   \
    X(tiny_move, plus, 0)                                                     \
    X(tiny_lea, plus, 9)                                                      \
    X(tiny_nop, keeps, 0)                                                     \
    X(tiny_jmp, plus, 9)                                                      \
    X(tiny_last, keeps, 0)                                                    \
    X(shape_tail_short, plus, 9)                                              \
    X(shape_tail_near, plus, 1)                                               \
    X(shape_tail_memory, plus, 1)                                             \
    X(shape_tail_register, plus, 1)                                           \
    X(shape_tail_notrack, plus, 1)                                            \
    X(shape_tail_jcc_short, by_carry, 9 | 4 << 8)                             \
    X(shape_tail_jcc_near, by_carry, 1 | 4 << 8)                              \
    X(shape_tail_only, plus, 1)                                               \
    X(shape_push_ret, plus, 1)                                                \
    X(shape_retpoline, retpoline, 1)                                          \
    X(shape_falls, plus, 12)                                                  \
    X(shape_fallen_into, keeps, 0)                                            \
    X(shape_into_middle, plus, 1)                                             \
    X(shape_endbr, plus, 1)                                                   \
    X(shape_loop, loops, 3, .rcx_mask = 7, .rcx_least = 1)                    \
    X(shape_loop_jmp, loops, 3, .rcx_mask = 7, .rcx_least = 1)                \
    X(shape_jrcxz_first, by_rcx_zero, 0, .rcx_mask = 1)                       \
    X(shape_call_first, plus, 2)                                              \
    X(shape_call_second, plus, 2)                                             \
    X(shape_call_memory_first, plus, 1)                                       \
    X(shape_rip_first, loads_constant, 0)                                     \
    X(shape_rip_lea, loads_address, 0)                                        \
    X(shape_rip_immediate, stores, 0)                                         \
    X(shape_jcc_first, by_carry, 1 | 4 << 8)                                  \
    X(shape_target_in_entry, by_carry, 1 | 4 << 8)                            \
    X(shape_jmp_first, plus, 1)                                               \
    X(shape_enter, plus, 1)                                                   \
    X(shape_stack_argument, loads_constant, 0)                                \
    X(shape_red_zone, plus, 1)                                                \
    X(shape_jump_table, by_table, 10, .rcx_mask = 3, .flags_ignored = FLAG_BITS) \
    X(shape_cold, by_carry, 30 | 4 << 8)                                      \
    X(shape_cold_exit, by_carry, 30 | 4 << 8)                                 \
    X(shape_alias, plus, 1)                                                   \
    X(shape_far, plus, 1)                                                     \
    X(shape_mark, keeps, 0)                                                   \
    X(shape_mark_red_zone, keeps, 0)                                          \
    X(shape_mark_jcc, kept_by_carry, 4)                                       \
    X(shape_mark_over, plus, 1)                                               \
    X(shape_mark_between, plus, 5)                                            \
    X(shape_mark_call, plus, 1)                                               \
    X(shape_mark_tail, plus, 1)                                               \
    X(shape_mark_only, keeps, 0)                                              \
    X(state_seer, exits, 0)                                                   \
    X(state_seer_endbr, exits, 0)                                             \
    X(state_seer_tail, exits, 0)

#define DECLARE(f, e, ...) void f(void);
LIST(DECLARE)
void shape_rip_vex(void);

#define ENTRY(f, e, ...) {.name = #f, .code = f, .expect = e, .k = __VA_ARGS__},
static const struct shape shapes[] = {LIST(ENTRY)};
static const struct shape shape_avx = {.name = "shape_rip_vex", .code = shape_rip_vex, .expect = loads_vector};

static void fill(struct regs *r, uint64_t *seed)
{
    for (size_t i = 0; i < sizeof *r / 8; i++)
        ((uint64_t *)r)[i] = target_random(seed);
    r->flags = (r->flags & FLAG_BITS) | 0x202;
    struct fx *fx = &r->fx;
    memset(fx->rest, 0, sizeof fx->rest);
    /* Every exception stays masked; precision, rounding, the top of the stack
     * and the conditions are free. */
    fx->fcw = (fx->fcw & 0x0f00) | 0x037f;
    fx->fsw &= 0x7f00;
    fx->fop = 0, fx->fip = 0, fx->fdp = 0;
    fx->mxcsr = (fx->mxcsr & 0xe07f) | 0x1f80;
    for (int i = 0; i < 8; i++)
        memset(fx->st[i] + 10, 0, 6);
    for (int i = 0; i < 16; i++)
        memcpy(r->zmm[i], fx->xmm[i], 16);
}

static const char *const gpr_names[] = {"rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "r8",
                                        "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rsp"};

__attribute__((noreturn)) static void differs(const struct shape *s, const char *where, const char *what, int n)
{
    fprintf(stderr, "state.c: %s: at its %s, %s %d differs\n", s->name, where, what, n);
    exit(1);
}

static void compare(const struct shape *s, const char *where, const struct regs *got, const struct regs *want,
                    uint64_t flags)
{
    for (int i = 0; i < GPRS; i++)
        if (got->gpr[i] != want->gpr[i]) {
            fprintf(stderr, "state.c: %s: at its %s, %s is %#llx, want %#llx\n", s->name, where, gpr_names[i],
                    (unsigned long long)got->gpr[i], (unsigned long long)want->gpr[i]);
            exit(1);
        }
    if ((got->flags ^ want->flags) & flags) {
        fprintf(stderr, "state.c: %s: at its %s, the flags are %#llx, want %#llx\n", s->name, where,
                (unsigned long long)got->flags, (unsigned long long)want->flags);
        exit(1);
    }
    if (got->fx.fcw != want->fx.fcw || got->fx.fsw != want->fx.fsw || got->fx.ftw != want->fx.ftw)
        differs(s, where, "x87 control, status or tag word", 0);
    if (got->fx.mxcsr != want->fx.mxcsr)
        differs(s, where, "mxcsr", 0);
    for (int i = 0; i < 8; i++)
        if (memcmp(got->fx.st[i], want->fx.st[i], 10) != 0)
            differs(s, where, "st", i);
    for (int i = 0; i < 16; i++)
        if (memcmp(got->fx.xmm[i], want->fx.xmm[i], 16) != 0)
            differs(s, where, "xmm", i);
    for (int i = 0; i < (width == 2 ? 32 : 16); i++)
        if (width > 0 && memcmp(got->zmm[i], want->zmm[i], width == 2 ? 64 : 32) != 0)
            differs(s, where, width == 2 ? "zmm" : "ymm", i);
    for (int i = 0; i < 8 && width == 2; i++)
        if (got->k[i] != want->k[i])
            differs(s, where, "k", i);
}

static void call_one(const struct shape *s, uint64_t *seed)
{
    struct block *b = &state_block;
    struct regs want;

    fill(&b->in, seed);
    fill(&b->exit, seed);
    if (s->rcx_mask)
        b->in.gpr[RCX] = (b->in.gpr[RCX] & s->rcx_mask) + s->rcx_least;
    memset(&b->out, 0, sizeof b->out);
    memset(&b->seen, 0, sizeof b->seen);
    b->callee = s->code;
    b->width = width;
    state_call();

    want = b->in;
    want.gpr[RSP] = b->rsp;
    s->expect(&b->in, &want, s->k);
    compare(s, "return", &b->out, &want, FLAG_BITS & ~s->flags_ignored);
    if (s->expect == exits) {
        want = b->in;
        want.gpr[RSP] = b->rsp - 8; /* the return address */
        compare(s, "entry", &b->seen, &want, FLAG_BITS);
    }
}

static uint32_t find_width(void)
{
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_AVX))
        return 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 6) != 6)
        return 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX512F) || !(b & bit_AVX512BW) || (low & 0xe0) != 0xe0)
        return 1;
    return 2;
}

static void *thread_main(void *arg)
{
    uint64_t seed = (uint64_t)(uintptr_t)arg * 0x1234567 + 1, calls = 0, n;
    for (n = 0; rounds_each ? n < rounds_each : !stop; n++) {
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++, calls++)
            call_one(&shapes[i], &seed);
        if (width > 0)
            call_one(&shape_avx, &seed), calls++;
    }
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
    rounds_each = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    _Static_assert(sizeof(struct regs) == REGS_SIZE, "layout");
    _Static_assert(__builtin_offsetof(struct regs, flags) == REGS_FLAGS, "layout");
    _Static_assert(__builtin_offsetof(struct regs, fx) == REGS_FX, "layout");
    _Static_assert(__builtin_offsetof(struct regs, zmm) == REGS_ZMM, "layout");
    _Static_assert(__builtin_offsetof(struct regs, k) == REGS_K, "layout");
    _Static_assert(__builtin_offsetof(struct block, callee) == BLOCK_CALLEE, "layout");
    _Static_assert(__builtin_offsetof(struct block, width) == BLOCK_WIDTH, "layout");

    width = find_width();
    target_ready();
    if (rounds_each)
        target_wait_line();
    for (int i = 0; i < threads; i++)
        CHECK(pthread_create(&t[i], NULL, thread_main, (void *)(uintptr_t)(i + 1)) == 0);
    if (!rounds_each)
        target_wait_line();
    stop = 1;
    for (int i = 0; i < threads; i++)
        pthread_join(t[i], NULL);
    if (rounds_each) {
        printf("counted rounds=%llu calls=%llu ok\n", (unsigned long long)total_rounds,
               (unsigned long long)total_calls);
        fflush(stdout);
        target_wait_line();
    }
    printf("state rounds=%llu calls=%llu vector_width=%u ok\n", (unsigned long long)total_rounds,
           (unsigned long long)total_calls, width);
    return 0;
}
