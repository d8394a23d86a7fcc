/*
 * armed LOG: threads that make calls and keep a log of them, for a test of what
 * a recorder that was armed dumps. LOG becomes a file of one header page and,
 * for each thread, ROOM records: function, time-stamp counter before the call
 * and behind it. A record's function is stored last.
 *
 *   worker 0 and 1 call work_a, which calls work_b, some hundred thousand times a second
 *   worker 2 calls work_c a thousand times a second
 *   worker 3 serves: a line "N MS" on stdin makes it call request N times, each
 *   for MS milliseconds; "both MS" makes workers 3 and 4 do that at the same time
 *   "loop" makes worker 3 call endless, which returns at the next line
 *
 * "done 1.", "done 2." … is printed behind each. It ends with stdin.
 */
#define _GNU_SOURCE
#include "target.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define WORKERS 5
#define ROOM (1ul << 24)
#define PAGE 4096

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
static atomic_int stop, looping;
static pthread_barrier_t together;
static long request_ms;

/* The counter that recordings go by. */
static inline uint64_t ticks(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#else
    uint64_t t;
    __asm__ volatile("isb; mrs %0, cntvct_el0; isb" : "=r"(t)::"memory");
    return t;
#endif
}

TRACED uint64_t work_b(uint64_t x) { return x * 3 + 1; }
TRACED uint64_t work_c(uint64_t x) { return x * 5 + 2; }

static void note(int w, int function, uint64_t from)
{
    uint64_t n = atomic_load_explicit(&header->made[w], memory_order_relaxed);
    if (n == ROOM)
        return;
    struct record *r = &logs[w][n];
    r->from = from;
    r->to = ticks();
    r->function = function;
    atomic_store_explicit(&header->made[w], n + 1, memory_order_release);
}

TRACED uint64_t work_a(uint64_t x, int w)
{
    uint64_t sum = 0;
    for (int i = 0; i < 3; i++) {
        uint64_t from = ticks();
        sum += work_b(x + i);
        note(w, 2, from);
    }
    return sum;
}

static void spin(long ms)
{
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < ms);
}

TRACED int request(long ms)
{
    if (ms > 0)
        spin(ms);
    return ms > 0 ? -1 : 0;
}

TRACED void endless(void)
{
    while (atomic_load(&looping))
        work_c(1);
}

static void *worker(void *arg)
{
    int w = (int)(intptr_t)arg;
    char name[16];
    snprintf(name, sizeof name, "worker %d", w);
    pthread_setname_np(pthread_self(), name);
    header->tid[w] = syscall(SYS_gettid);
    for (uint64_t i = 0; !stop; i++) {
        uint64_t from = ticks();
        if (w < 2) {
            work_a(i, w);
            note(w, 1, from);
            if (i % 16 == 0)
                nanosleep(&(struct timespec){0, 100000}, NULL);
        } else {
            work_c(i);
            note(w, 3, from);
            nanosleep(&(struct timespec){0, 1000000}, NULL);
        }
    }
    return NULL;
}

static void serve(int w, long n, long ms)
{
    for (long i = 0; i < n; i++) {
        uint64_t from = ticks();
        request(ms);
        note(w, 4, from);
    }
}

static void *second(void *arg)
{
    (void)arg;
    header->tid[4] = syscall(SYS_gettid);
    for (;;) {
        pthread_barrier_wait(&together);
        if (stop)
            return NULL;
        serve(4, 1, request_ms);
        pthread_barrier_wait(&together);
    }
}

static void *loop(void *arg)
{
    (void)arg;
    endless();
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
    pthread_barrier_init(&together, NULL, 2);
    pthread_t threads[3], other, looper;
    for (int w = 0; w < 3; w++)
        CHECK(pthread_create(&threads[w], NULL, worker, (void *)(intptr_t)w) == 0);
    CHECK(pthread_create(&other, NULL, second, NULL) == 0);
    header->tid[3] = syscall(SYS_gettid);
    target_ready();
    char line[64];
    long n, ms;
    int done = 0;
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "both %ld", &ms) == 1) {
            request_ms = ms;
            pthread_barrier_wait(&together);
            serve(3, 1, ms);
            pthread_barrier_wait(&together);
        } else if (sscanf(line, "%ld %ld", &n, &ms) == 2) {
            serve(3, n, ms);
        } else if (strcmp(line, "loop\n") == 0) {
            looping = 1;
            CHECK(pthread_create(&looper, NULL, loop, NULL) == 0);
        } else if (looping) {
            looping = 0;
            pthread_join(looper, NULL);
        }
        printf("done %d.\n", ++done);
        fflush(stdout);
    }
    stop = 1;
    pthread_barrier_wait(&together);
    pthread_join(other, NULL);
    for (int w = 0; w < 3; w++)
        pthread_join(threads[w], NULL);
    puts("ended requests=0 ok");
    return 0;
}
