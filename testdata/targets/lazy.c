/*
 * lazy THREADS [ROUNDS]: 1024 functions that are each called for the first time
 * by all threads at once.
 *
 * They start when a line comes on stdin. In every round all threads go through
 * the same functions in the same order, from a barrier on; the first call of a
 * function counts how long it took. "counted" is printed after ROUNDS rounds (2
 * by default), and the process stays until stdin ends. The last line holds the
 * calls made, and the median of the first calls in nanoseconds.
 */
#define _GNU_SOURCE
#include "target.h"
#include <pthread.h>
#include <time.h>

#define FUNCTIONS 1024

/* Six arguments in registers and two on the stack; the result depends on all. */
#define ONE(n)                                                                                                        \
    TRACED uint64_t lazy_##n(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g,     \
                             uint64_t h)                                                                              \
    {                                                                                                                 \
        return a + 3 * b + 5 * c + 7 * d + 11 * e + 13 * f + 17 * g + 19 * h + 0x##n;                                 \
    }
#define FOUR(n) ONE(n##0) ONE(n##1) ONE(n##2) ONE(n##3)
#define SIXTEEN(n) FOUR(n##0) FOUR(n##1) FOUR(n##2) FOUR(n##3)
#define MANY(n) SIXTEEN(n##0) SIXTEEN(n##1) SIXTEEN(n##2) SIXTEEN(n##3)
#define ALL(n) MANY(n##0) MANY(n##1) MANY(n##2) MANY(n##3)
ALL(0)
ALL(1)
ALL(2)
ALL(3)

typedef uint64_t lazy(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

#undef ONE
#define ONE(n) lazy_##n,
static lazy *const table[FUNCTIONS] = {ALL(0) ALL(1) ALL(2) ALL(3)};
#undef ONE
#define ONE(n) 0x##n,
static const uint64_t number[FUNCTIONS] = {ALL(0) ALL(1) ALL(2) ALL(3)};

static pthread_barrier_t barrier;
static int rounds = 2;
static uint64_t took[FUNCTIONS]; /* by the first thread */

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *run(void *arg)
{
    uint64_t id = (uint64_t)(uintptr_t)arg, seed = id + 1, calls = 0;
    for (int r = 0; r < rounds; r++) {
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < FUNCTIONS; i++) {
            uint64_t v[8];
            for (int k = 0; k < 8; k++)
                v[k] = target_random(&seed);
            uint64_t from = now();
            uint64_t got = table[i](v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
            if (id == 0 && r == 0)
                took[i] = now() - from;
            CHECK(got == v[0] + 3 * v[1] + 5 * v[2] + 7 * v[3] + 11 * v[4] + 13 * v[5] + 17 * v[6] + 19 * v[7] + number[i]);
            calls++;
        }
    }
    return (void *)(uintptr_t)calls;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 8;
    pthread_t t[256];
    CHECK(threads > 0 && threads <= 256);
    if (argc > 2)
        rounds = atoi(argv[2]);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    target_ready();
    target_wait_line();
    for (int i = 0; i < threads; i++)
        CHECK(pthread_create(&t[i], NULL, run, (void *)(uintptr_t)i) == 0);
    uint64_t calls = 0;
    for (int i = 0; i < threads; i++) {
        void *n;
        pthread_join(t[i], &n);
        calls += (uintptr_t)n;
    }
    qsort(took, FUNCTIONS, sizeof took[0], by_size);
    printf("counted\n");
    fflush(stdout);
    target_wait_line();
    printf("lazy calls=%llu first_ns=%llu functions=%d ok\n", (unsigned long long)calls,
           (unsigned long long)took[FUNCTIONS / 2], FUNCTIONS);
    return 0;
}
