/*
 * threads MODE THREADS [CALLS]: threads that compute checksums through small
 * functions and count every call of them.
 *
 *   steady THREADS        the same threads until stdin ends
 *   churn THREADS         THREADS at a time, each living for some 200 rounds;
 *                         a new one is born for each that dies
 *   fixed THREADS ROUNDS  every thread makes ROUNDS rounds and ends. They start
 *                         when a line comes on stdin; "counted" is printed at
 *                         their end, and the process stays until stdin ends.
 *   late THREADS          as steady, but they start when a line comes on stdin,
 *                         and "named" is printed when all have named themselves
 *
 * A round calls counted_a 4 times, counted_b 3 times, counted_c once and
 * counted_d once. Of these, counted_d calls counted_a and counted_b once each.
 * The last line holds the calls actually made, added up from all threads.
 */
#define _GNU_SOURCE
#include "target.h"
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#ifdef FAR_DATA
char far_data[FAR_DATA]; /* more than a branch reaches */
#endif

struct counts {
    uint64_t a, b, c, d;
};

static atomic_uint_fast64_t total_a, total_b, total_c, total_d, threads_born;
static atomic_int stop, named;
static uint64_t rounds_each; /* 0: until stop */

TRACED uint64_t counted_a(uint64_t x)
{
    return (x << 7 | x >> 57) * 0x9e3779b97f4a7c15u;
}

/* Two returns. */
TRACED uint64_t counted_b(uint64_t x, uint64_t y)
{
    if (x & 1)
        return x + y;
    return (x >> 1) ^ y;
}

/* A frame, a loop and memory. */
TRACED uint64_t counted_c(const unsigned char *p, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

/* A call and a tail call. */
TRACED uint64_t counted_d(uint64_t x)
{
    uint64_t y = counted_a(x);
    return counted_b(y, x);
}

/* The same arithmetic without a call, so that every result can be checked. */
static inline __attribute__((always_inline)) uint64_t plain_a(uint64_t x)
{
    return (x << 7 | x >> 57) * 0x9e3779b97f4a7c15u;
}

static inline __attribute__((always_inline)) uint64_t plain_b(uint64_t x, uint64_t y)
{
    return x & 1 ? x + y : (x >> 1) ^ y;
}

static inline __attribute__((always_inline)) uint64_t plain_c(const unsigned char *p, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

static void one_round(uint64_t x, struct counts *n)
{
    uint64_t v = x, w = x;
    for (int i = 0; i < 3; i++) {
        v = counted_b(counted_a(v), x + i);
        w = plain_b(plain_a(w), x + i);
        n->a++, n->b++;
        CHECK(v == w);
    }
    CHECK(counted_a(v) == plain_a(w));
    n->a++;
    unsigned char text[40];
    memset(text, (int)v, sizeof text);
    CHECK(counted_c(text, 8 + v % 32) == plain_c(text, 8 + w % 32));
    n->c++;
    CHECK(counted_d(v) == plain_b(plain_a(w), w));
    n->d++, n->a++, n->b++;
}

static void *thread_main(void *arg)
{
    uint64_t id = (uint64_t)(uintptr_t)arg, rounds = rounds_each;
    struct counts n = {0};
    char name[16];
    snprintf(name, sizeof name, "work-%llu", (unsigned long long)(id % 1000000000));
    pthread_setname_np(pthread_self(), name);
    atomic_fetch_add(&named, 1);
    for (uint64_t i = 0; rounds ? i < rounds : !atomic_load_explicit(&stop, memory_order_relaxed); i++)
        one_round(id << 32 | i, &n);
    atomic_fetch_add(&total_a, n.a);
    atomic_fetch_add(&total_b, n.b);
    atomic_fetch_add(&total_c, n.c);
    atomic_fetch_add(&total_d, n.d);
    return NULL;
}

static pthread_t born(void)
{
    pthread_t t;
    uint64_t id = atomic_fetch_add(&threads_born, 1);
    CHECK(pthread_create(&t, NULL, thread_main, (void *)(uintptr_t)id) == 0);
    return t;
}

static void print_counts(const char *word)
{
    printf("%s counted_a=%llu counted_b=%llu counted_c=%llu counted_d=%llu threads=%llu ok\n", word,
           (unsigned long long)total_a, (unsigned long long)total_b, (unsigned long long)total_c,
           (unsigned long long)total_d, (unsigned long long)threads_born);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "steady";
    int threads = argc > 2 ? atoi(argv[2]) : 4;
    pthread_t t[256];
    if (threads < 1 || threads > 256)
        threads = 4;

    if (strcmp(mode, "late") == 0) {
        target_ready();
        target_wait_line();
    } else if (strcmp(mode, "fixed") == 0) {
        rounds_each = argc > 3 ? strtoull(argv[3], NULL, 10) : 100000;
        target_ready();
        target_wait_line();
    } else if (strcmp(mode, "churn") == 0) {
        rounds_each = 200;
    }
    for (int i = 0; i < threads; i++)
        t[i] = born();
    if (strcmp(mode, "steady") == 0 || strcmp(mode, "churn") == 0)
        target_ready();
    if (strcmp(mode, "churn") == 0) {
        for (int i = 0; !target_told_to_stop(); i = (i + 1) % threads) {
            pthread_join(t[i], NULL);
            t[i] = born();
        }
    } else if (strcmp(mode, "steady") == 0) {
        target_wait_line();
        atomic_store(&stop, 1);
    } else if (strcmp(mode, "late") == 0) {
        while (atomic_load(&named) < threads)
            usleep(1000);
        puts("named");
        fflush(stdout);
        target_wait_line();
        atomic_store(&stop, 1);
    }
    for (int i = 0; i < threads; i++)
        pthread_join(t[i], NULL);
    if (strcmp(mode, "fixed") == 0) {
        print_counts("counted");
        target_wait_line();
    }
    print_counts("calls");
    return 0;
}
