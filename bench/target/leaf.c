/*
 * What a traced call costs, in thread CPU time.
 *
 *   leaf              reads "MODE CALLS" lines from stdin until it ends
 *   leaf MODE CALLS RUNS
 *
 * and prints nanoseconds per call for each line or run. Modes:
 *
 *   leaf   calls of leaf from a loop
 *   deep   the same under 8 callers, f8 → … → f1 → leaf
 *   limit  calls of leaf between two (rdtsc + one 16-byte store)
 *
 * Only leaf is there to be traced: peers that choose at compile time are told
 * to leave the rest alone.
 */
#define _GNU_SOURCE
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __clang__
#define UNTRACED __attribute__((noinline, xray_never_instrument, no_instrument_function))
#define TRACED __attribute__((noinline, xray_always_instrument))
#else
#define UNTRACED __attribute__((noipa, no_instrument_function))
#define TRACED __attribute__((noipa))
#endif

/* 64 KB: stays in cache, as a ring that is drained does. */
enum { RING = 4096 };
static __m128i ring[RING];

TRACED uint64_t leaf(uint64_t x)
{
    __asm__ volatile("" : "+r"(x));
    return x * 3 + 1;
}

/* What follows each call keeps it from being a tail call. */
#define CALLER(f, g)                                                          \
    UNTRACED uint64_t f(uint64_t x)                                           \
    {                                                                         \
        uint64_t r = g(x + 1);                                                \
        __asm__ volatile("" : "+r"(r));                                       \
        return r + 1;                                                         \
    }
CALLER(f1, leaf)
CALLER(f2, f1)
CALLER(f3, f2)
CALLER(f4, f3)
CALLER(f5, f4)
CALLER(f6, f5)
CALLER(f7, f6)
CALLER(f8, f7)

UNTRACED static double thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

UNTRACED static uint64_t run_leaf(uint64_t calls)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < calls; i++)
        sum += leaf(i);
    return sum;
}

UNTRACED static uint64_t run_deep(uint64_t calls)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < calls; i++)
        sum += f8(i);
    return sum;
}

UNTRACED static uint64_t run_limit(uint64_t calls)
{
    uint64_t sum = 0, at = 0;
    for (uint64_t i = 0; i < calls; i++) {
        _mm_store_si128(&ring[at++ % RING], _mm_set_epi64x((long long)__rdtsc(), 1));
        sum += leaf(i);
        _mm_store_si128(&ring[at++ % RING], _mm_set_epi64x((long long)__rdtsc(), 2));
    }
    return sum + (uint64_t)_mm_cvtsi128_si64(ring[sum % RING]);
}

UNTRACED static int measure(const char *mode, uint64_t calls)
{
    uint64_t (*run)(uint64_t);
    if (strcmp(mode, "leaf") == 0)
        run = run_leaf;
    else if (strcmp(mode, "deep") == 0)
        run = run_deep;
    else if (strcmp(mode, "limit") == 0)
        run = run_limit;
    else
        return 1;
    run(calls / 20 + 1); /* the first pages, the caches, the predictors */
    double start = thread_ns();
    volatile uint64_t keep = run(calls);
    double took = thread_ns() - start;
    (void)keep;
    printf("%.4f\n", took / (double)calls);
    fflush(stdout);
    return 0;
}

UNTRACED int main(int argc, char **argv)
{
    char line[64], mode[16];
    unsigned long long calls;
    if (argc == 4) {
        for (int i = 0; i < atoi(argv[3]); i++)
            if (measure(argv[1], strtoull(argv[2], NULL, 10)) != 0)
                return 2;
        return 0;
    }
    while (fgets(line, sizeof line, stdin) != NULL)
        if (sscanf(line, "%15s %llu", mode, &calls) != 2 || calls == 0 || measure(mode, calls) != 0)
            return 2;
    return 0;
}
