/*
 * filters ROUNDS THREADS TICKS: pairs of threads, of which one names itself work-N
 * and the other rest-N, make ROUNDS random trees of calls each. Some calls take
 * TICKS of the processor's counter, some trees are left by longjmp. They start
 * when a line comes on stdin; "counted" is printed at their end, and the
 * process stays until stdin ends.
 *
 * The last line holds, of each of the functions fa to fe, how many calls were
 * made (fa), in threads work-N (fa_work), that took TICKS (fa_must) and that may
 * have taken a twentieth of that, as the clock was read outside (fa_may), that were among the outermost
 * 1, 2 and 3 (fa_1 …), and that were made by fb or are its own (fa_in).
 */
#define _GNU_SOURCE
#include "target.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <string.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

enum { FUNCTIONS = 5, INSIDE = 1, SHALLOW = 3, DEEP = 7 };
enum { CALLS, WORK, MUST, MAY, IN, FIRST, KINDS = FIRST + SHALLOW };

typedef uint64_t fn(int level);
static fn *const fns[FUNCTIONS];
static atomic_uint_fast64_t total[FUNCTIONS][KINDS];
static uint64_t rounds, ticks;

static __thread uint64_t count[FUNCTIONS][KINDS], seed;
static __thread int depth, inside, works;
static __thread int open[DEEP + 1];
static __thread jmp_buf back;

static uint64_t now(void)
{
#ifdef __x86_64__
    _mm_lfence();
    uint64_t t = __rdtsc();
    _mm_lfence();
#else
    uint64_t t;
    __asm__ volatile("isb\n mrs %0, cntvct_el0\n isb" : "=r"(t)::"memory");
#endif
    return t;
}

static uint64_t call(int f, int level)
{
    uint64_t from = now(), r = fns[f](level);
    count[f][MAY] += now() - from >= ticks / 20;
    return r;
}

static inline __attribute__((always_inline)) uint64_t body(int f, int level)
{
    uint64_t from = now(), sum = 1;
    open[depth++] = f;
    inside += f == INSIDE;
    count[f][CALLS]++;
    count[f][WORK] += works;
    count[f][IN] += inside > 0;
    for (int i = 0; i < SHALLOW; i++)
        count[f][FIRST + i] += depth <= i + 1;
    uint64_t r = target_random(&seed);
    for (; level < DEEP && (r & 3) > 1; r >>= 2)
        sum += call((r >> 40) % FUNCTIONS, level + 1);
    r = target_random(&seed);
    if (r % 300 == 0)
        while (now() - from < ticks)
            ;
    if (level > 2 && (r >> 20) % 400 == 0) {
        for (int i = 0; i < depth; i++)
            count[open[i]][MAY]++; /* when it ends is seen later */
        longjmp(back, 1);
    }
    depth--;
    inside -= f == INSIDE;
    count[f][MUST] += now() - from >= ticks;
    return sum;
}

#define FUNCTION(name, f)                                                     \
    TRACED uint64_t name(int level)                                           \
    {                                                                         \
        return body(f, level) + f;                                            \
    }
FUNCTION(fa, 0)
FUNCTION(fb, 1)
FUNCTION(fc, 2)
FUNCTION(fd, 3)
FUNCTION(fe, 4)
static fn *const fns[FUNCTIONS] = {fa, fb, fc, fd, fe};

static void *thread_main(void *arg)
{
    uintptr_t id = (uintptr_t)arg;
    char name[16];
    seed = id;
    works = id & 1;
    snprintf(name, sizeof name, "%s-%u", works ? "work" : "rest", (unsigned)id / 2);
    pthread_setname_np(pthread_self(), name);
    for (volatile uint64_t i = 0; i < rounds; i++) {
        depth = inside = 0;
        if (setjmp(back) == 0)
            CHECK(call(target_random(&seed) % FUNCTIONS, 0) > 0);
    }
    for (int f = 0; f < FUNCTIONS; f++)
        for (int k = 0; k < KINDS; k++)
            atomic_fetch_add(&total[f][k], count[f][k]);
    return NULL;
}

static void print_counts(const char *word)
{
    static const char *const kinds[KINDS] = {"", "_work", "_must", "_may", "_in", "_1", "_2", "_3"};
    printf("%s", word);
    for (int f = 0; f < FUNCTIONS; f++)
        for (int k = 0; k < KINDS; k++)
            printf(" f%c%s=%llu", 'a' + f, kinds[k], (unsigned long long)total[f][k]);
    puts(" ok");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    pthread_t t[64];
    CHECK(argc == 4);
    rounds = strtoull(argv[1], NULL, 10);
    int threads = atoi(argv[2]);
    ticks = strtoull(argv[3], NULL, 10);
    CHECK(threads > 0 && threads <= 64);
    target_ready();
    target_wait_line();
    for (int i = 0; i < threads; i++)
        CHECK(pthread_create(&t[i], NULL, thread_main, (void *)(uintptr_t)i) == 0);
    for (int i = 0; i < threads; i++)
        pthread_join(t[i], NULL);
    print_counts("counted");
    target_wait_line();
    print_counts("calls");
    return 0;
}
