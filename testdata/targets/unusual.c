/*
 * unusual MODE: threads that call leaf and check what it returns, until stdin
 * ends, in a process that is set up as few are:
 *
 *   notsc       it has forbidden itself to read the time-stamp counter
 *   locked      all memory that it has and will have is locked
 *   fixed       nothing of it is at a random address
 *   leaderless  its main thread has ended
 */
#define _GNU_SOURCE
#include "target.h"
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>

enum { THREADS = 3, STACK = 128 << 10 };

static atomic_int stop;
static atomic_uint_fast64_t calls;
static pthread_t workers[THREADS];

TRACED uint64_t leaf(uint64_t x)
{
    return x * 3 + 1;
}

static void *work(void *arg)
{
    (void)arg;
    uint64_t n = 0;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        for (int i = 0; i < 200; i++, n++)
            CHECK(leaf(n) == n * 3 + 1);
        usleep(200);
    }
    atomic_fetch_add(&calls, n);
    return NULL;
}

static pthread_t born(void *(*start)(void *), void *arg)
{
    pthread_t t;
    pthread_attr_t small;
    CHECK(pthread_attr_init(&small) == 0);
    CHECK(pthread_attr_setstacksize(&small, STACK) == 0);
    CHECK(pthread_create(&t, &small, start, arg) == 0);
    return t;
}

static void *to_the_end(void *leader)
{
    if (leader)
        CHECK(pthread_join(*(pthread_t *)leader, NULL) == 0);
    target_ready();
    target_wait_line();
    atomic_store(&stop, 1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i], NULL);
    printf("unusual leaf=%llu ok\n", (unsigned long long)calls);
    fflush(stdout);
    exit(0);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";

    if (strcmp(mode, "notsc") == 0) {
        CHECK(prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) == 0);
    } else if (strcmp(mode, "locked") == 0) {
        CHECK(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
    } else if (strcmp(mode, "fixed") == 0) {
        int now = personality(0xffffffff);
        if (!(now & ADDR_NO_RANDOMIZE)) {
            CHECK(personality(now | ADDR_NO_RANDOMIZE) >= 0);
            execv("/proc/self/exe", argv);
            CHECK(!"execv");
        }
    }
    for (int i = 0; i < THREADS; i++)
        workers[i] = born(work, NULL);
    if (strcmp(mode, "leaderless") != 0)
        to_the_end(NULL);
    static pthread_t leader;
    leader = pthread_self();
    born(to_the_end, &leader);
    pthread_exit(NULL);
}
