/*
 * How long the first call of a function takes, for a recorder that makes a
 * probe then.
 *
 *   firsts THREADS   with that many other threads, which sleep and wake
 *
 * Each line on stdin is a number of calls, each of another function that has
 * not been called yet; the answer is the median of their nanoseconds.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define F(n)                                                                  \
    __attribute__((noipa)) static uint64_t first_##n(uint64_t x)              \
    {                                                                         \
        __asm__ volatile("" : "+r"(x));                                       \
        return x * 3 + 0x##n;                                                 \
    }
#define F4(n) F(n##0) F(n##1) F(n##2) F(n##3)
#define F16(n) F4(n##0) F4(n##1) F4(n##2) F4(n##3)
#define F64(n) F16(n##0) F16(n##1) F16(n##2) F16(n##3)
#define F256(n) F64(n##0) F64(n##1) F64(n##2) F64(n##3)
#define F1024(n) F256(n##0) F256(n##1) F256(n##2) F256(n##3)
F1024(1) F1024(2) F1024(3) F1024(4) F1024(5) F1024(6) F1024(7) F1024(8)

#define P(n) first_##n,
#define P4(n) P(n##0) P(n##1) P(n##2) P(n##3)
#define P16(n) P4(n##0) P4(n##1) P4(n##2) P4(n##3)
#define P64(n) P16(n##0) P16(n##1) P16(n##2) P16(n##3)
#define P256(n) P64(n##0) P64(n##1) P64(n##2) P64(n##3)
#define P1024(n) P256(n##0) P256(n##1) P256(n##2) P256(n##3)
static uint64_t (*const firsts[])(uint64_t) = {
    P1024(1) P1024(2) P1024(3) P1024(4) P1024(5) P1024(6) P1024(7) P1024(8)
};
enum { COUNT = sizeof firsts / sizeof *firsts };

static __attribute__((noreturn)) void *sleeper(void *unused)
{
    (void)unused;
    for (;;)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    static int64_t took[COUNT];
    int threads = argc > 1 ? atoi(argv[1]) : 0, done = 0;
    volatile uint64_t sum = 0;
    char line[64];

    for (int i = 0; i < threads; i++) {
        pthread_t t;
        if (pthread_create(&t, NULL, sleeper, NULL) != 0)
            return 1;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof line, stdin)) {
        int n = atoi(line);
        if (n < 1 || n > COUNT - done)
            return 1;
        for (int i = 0; i < n; i++) {
            int64_t start = now();
            sum += firsts[done + i](i);
            took[i] = now() - start;
        }
        done += n;
        qsort(took, n, sizeof *took, by_size);
        printf("%lld\n", (long long)took[n / 2]);
    }
    return 0;
}
