/*
 * switched LOG: threads that make calls and keep a log of them, for a test of
 * functions that are switched off and on. LOG is as that of armed: one header
 * page and, for each thread, ROOM records: function, time-stamp counter before
 * the call and behind it; a record's function is stored last.
 *
 *   sw_outer calls sw_inner three times, and sw_tail
 *   sw_tail ends with a tail call of sw_end
 *   sw_deep calls itself, eight times
 *   sw_jump is left by longjmp out of sw_leave each fourth time
 *   sw_signal is called by a handler, now and then
 *   sw_long takes a fifth of a second
 *
 * It runs until stdin ends. A wrong result ends it at once.
 */
#define _GNU_SOURCE
#include "target.h"
#include "ticks.h"
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#define WORKERS 4
#define ROOM (1u << 20)
#define PAGE 4096

enum { OUTER = 1, INNER, TAIL, END, DEEP, JUMP, LEAVE, SIGNAL, LONG };

struct record {
    uint64_t from, to;
    uint64_t function;
};
struct header {
    uint64_t tid[WORKERS];
    _Atomic uint64_t made[WORKERS];
};

static struct header *header;
static struct record *logs[WORKERS];
static atomic_int stop;
static __thread int self;
static __thread jmp_buf back;

/* Handlers note their calls between those of what they interrupt. */
static void note(int function, uint64_t from)
{
    uint64_t to = ticks();
    uint64_t n = atomic_fetch_add_explicit(&header->made[self], 1, memory_order_relaxed);
    if (n >= ROOM) /* what comes then isn't looked at */
        return;
    struct record *r = &logs[self][n];
    r->from = from;
    r->to = to;
    r->function = function;
}

#define CALL(function, call, want)                                            \
    do {                                                                      \
        uint64_t from_ = ticks();                                               \
        uint64_t got_ = (call);                                               \
        note(function, from_);                                                \
        CHECK(got_ == (uint64_t)(want));                                      \
    } while (0)

TRACED uint64_t sw_inner(uint64_t x) { return x * 3 + 1; }
TRACED uint64_t sw_end(uint64_t x) { return x ^ 0x5555; }
TRACED uint64_t sw_tail(uint64_t x) { return sw_end(x + 1); }

TRACED uint64_t sw_outer(uint64_t x)
{
    for (int i = 0; i < 3; i++)
        CALL(INNER, sw_inner(x + i), (x + i) * 3 + 1);
    CALL(TAIL, sw_tail(x), (x + 1) ^ 0x5555);
    return x + 7;
}

TRACED uint64_t sw_deep(uint64_t n)
{
    if (n == 0)
        return 0;
    uint64_t from = ticks();
    uint64_t below = sw_deep(n - 1);
    note(DEEP, from);
    return below + n;
}

TRACED void sw_leave(int leaves)
{
    if (leaves)
        longjmp(back, 1);
}

TRACED uint64_t sw_jump(int leaves)
{
    sw_leave(leaves);
    return 11;
}

TRACED uint64_t sw_signal(uint64_t x) { return x + 5; }

TRACED uint64_t sw_long(uint64_t x)
{
    nanosleep(&(struct timespec){0, 200000000}, NULL);
    return x + 9;
}

static void handle(int number)
{
    (void)number;
    CALL(SIGNAL, sw_signal(1), 6);
}

static void *worker(void *arg)
{
    self = (int)(intptr_t)arg;
    header->tid[self] = syscall(SYS_gettid);
    for (volatile uint64_t i = 0; !stop; i++) {
        if (self == 0) {
            CALL(LONG, sw_long(i), i + 9);
            continue;
        }
        CALL(OUTER, sw_outer(i), i + 7);
        uint64_t from = ticks();
        CHECK(sw_deep(8) == 36);
        note(DEEP, from);
        if (setjmp(back) == 0)
            CALL(JUMP, sw_jump(i % 4 == 0), 11);
        if (i % 16 == 0)
            raise(SIGUSR1);
        nanosleep(&(struct timespec){0, 300000}, NULL);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    size_t size = PAGE + WORKERS * (size_t)ROOM * sizeof(struct record);
    int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0 && ftruncate(fd, size) == 0);
    char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(p != MAP_FAILED);
    header = (struct header *)p;
    for (int w = 0; w < WORKERS; w++)
        logs[w] = (struct record *)(p + PAGE) + (size_t)w * ROOM;
    CHECK(signal(SIGUSR1, handle) != SIG_ERR);
    pthread_t threads[WORKERS];
    for (int w = 0; w < WORKERS; w++)
        CHECK(pthread_create(&threads[w], NULL, worker, (void *)(intptr_t)w) == 0);
    target_ready();
    target_wait_line();
    stop = 1;
    for (int w = 0; w < WORKERS; w++)
        pthread_join(threads[w], NULL);
    uint64_t made = 0;
    for (int w = 0; w < WORKERS; w++)
        made += header->made[w];
    printf("switched calls=%llu ok\n", (unsigned long long)made);
    return 0;
}
