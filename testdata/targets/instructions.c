/*
 * instructions CALLS: how many instructions so many calls of a function take.
 *
 * It prints "instructions NUMBER": those of its own thread in user space, its
 * loop, the calls and the function, as the processor's counter says. Half as
 * many calls come before, so that what is done once has been done.
 */
#define _GNU_SOURCE
#include "target.h"
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>

/* A plain function. */
TRACED uint64_t counted_work(uint64_t a, uint64_t b)
{
    uint64_t x = a ^ b;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Three hundred more, which nobody calls: where so many functions are recorded
 * their events are written by shared routines. */
#define OTHER(n)                                                              \
    TRACED uint64_t other_##n(uint64_t a, uint64_t b)                         \
    {                                                                         \
        return (a ^ (b >> 7)) * 0x9e3779b97f4a7c15u + n;                      \
    }
#define TEN(n)                                                                \
    OTHER(n##0) OTHER(n##1) OTHER(n##2) OTHER(n##3) OTHER(n##4)               \
    OTHER(n##5) OTHER(n##6) OTHER(n##7) OTHER(n##8) OTHER(n##9)
#define HUNDRED(n)                                                            \
    TEN(n##0) TEN(n##1) TEN(n##2) TEN(n##3) TEN(n##4)                         \
    TEN(n##5) TEN(n##6) TEN(n##7) TEN(n##8) TEN(n##9)
HUNDRED(1)
HUNDRED(2)
HUNDRED(3)

static uint64_t work(uint64_t calls)
{
    uint64_t x = 1;
    for (uint64_t i = 0; i < calls; i++)
        x += counted_work(x, i);
    return x;
}

static uint64_t counter(int fd)
{
    uint64_t n;
    CHECK(read(fd, &n, sizeof n) == sizeof n);
    return n;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    uint64_t calls = strtoull(argv[1], NULL, 10);
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_HARDWARE;
    attr.config = PERF_COUNT_HW_INSTRUCTIONS;
    attr.exclude_kernel = attr.exclude_hv = 1;
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
    CHECK(fd >= 0);
    uint64_t x = work(calls / 2);
    uint64_t before = counter(fd);
    x += work(calls);
    uint64_t after = counter(fd);
    fprintf(stderr, "%llu\n", (unsigned long long)x);
    printf("instructions %llu\n", (unsigned long long)(after - before));
    return 0;
}
