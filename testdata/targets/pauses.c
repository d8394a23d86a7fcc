/*
 * pauses: a program that pauses its own recording, and goes on, ROUNDS times,
 * and counts the calls that it makes while it may be recorded.
 *
 *   pauses ROUNDS [THREADS]  work() is called by the thread that pauses; busy()
 *                            by others, which tell of each call whether it was
 *                            surely within, or surely outside of, a pause
 *   pauses fork ROUNDS       children are forked in pauses, and go on by
 *                            themselves, or don't
 *   pauses wait              work() once a millisecond until stdin ends, behind
 *                            RESUME once a line has come
 *   pauses often             a child every few milliseconds, until it is killed
 *   pauses cost RUNS          how long a call, and a marker, takes in a pause
 */
#define _GNU_SOURCE
#include "../../mark/header/callreel.h"
#include "target.h"
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

static atomic_ulong recorded, paused; /* 0, or the number of the time in which it surely is so */
static atomic_int stop;
static uint64_t sure, never, busy_calls;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile uint64_t sum;

TRACED void work(uint64_t n) { sum += n; }

TRACED void deep(int n)
{
    if (n > 0)
        deep(n - 1);
    sum++;
}

TRACED void busy(uint64_t n) { sum += n; }

TRACED void in_child(uint64_t n) { sum += n; }

/* outer begins while recording is on, and ends in a pause. */
TRACED void outer(void)
{
    work(1);
    CALLREEL_PAUSE();
    work(2);
}

static void *others(void *arg)
{
    uint64_t s = 0, n = 0, calls = 0;
    (void)arg;
    while (!stop) {
        unsigned long r = recorded, p = paused;
        busy(calls++);
        s += r != 0 && recorded == r;
        n += p != 0 && paused == p;
    }
    pthread_mutex_lock(&mutex);
    sure += s, never += n, busy_calls += calls;
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void fork_children(int rounds)
{
    uint64_t kept = 0;
    for (int i = 0; i < rounds; i++) {
        CALLREEL_PAUSE();
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            for (int k = 0; k < 100; k++)
                in_child(k); /* it was born in a pause */
            if (i % 2 == 0) {
                CALLREEL_RESUME();
                for (int k = 0; k < 10; k++)
                    in_child(k);
            }
            _exit(0);
        }
        for (int k = 0; k < 100; k++)
            work(k);
        CHECK(waitpid(child, NULL, 0) == child);
        work(1);
        CALLREEL_RESUME();
        for (int k = 0; k < 7; k++)
            work(k), kept++;
    }
    printf("pauses kept=%lu children=%d ok\n", (unsigned long)kept, 10 * ((rounds + 1) / 2));
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

TRACED static void no_marker(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        __asm__ volatile("" ::: "memory");
}

TRACED static void marker(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        CALLREEL_INSTANT("tick");
        __asm__ volatile("" ::: "memory");
    }
}

TRACED static void calls(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        busy(i);
}

/* The least of some runs is what it costs: everything else comes on top. */
static double least(void (*run)(uint64_t), double best)
{
    const uint64_t n = 20000000;
    double from = now();
    run(n);
    double took = (now() - from) / n;
    return best == 0 || took < best ? took : best;
}

static void costs(int runs)
{
    double none = 0, mark = 0, call = 0;
    for (int i = 0; i < runs; i++) {
        none = least(no_marker, none);
        mark = least(marker, mark);
        call = least(calls, call);
    }
    printf("pauses marker_ps=%ld call_ps=%ld ok\n", (long)(1000 * (mark - none)), (long)(1000 * call));
}

int main(int argc, char **argv)
{
    uint64_t kept = 0, in_pause = 0;
    if (argc > 2 && strcmp(argv[1], "fork") == 0) {
        fork_children(atoi(argv[2]));
        return 0;
    }
    if (argc > 2 && strcmp(argv[1], "cost") == 0) {
        target_ready();
        target_wait_line();
        costs(atoi(argv[2]));
        return 0;
    }
    while (argc > 1 && strcmp(argv[1], "often") == 0) {
        work(1);
        pid_t child = fork();
        CHECK(child >= 0);
        for (int k = 0; child == 0 && k < 100; usleep(100))
            in_child(k++);
        if (child == 0)
            _exit(0);
        CHECK(waitpid(child, NULL, 0) == child);
    }
    if (argc > 1 && strcmp(argv[1], "wait") == 0) {
        target_ready();
        target_wait_line();
        CALLREEL_RESUME();
        for (; !target_told_to_stop(); usleep(1000))
            work(kept++);
        printf("pauses kept=%lu ok\n", (unsigned long)kept);
        return 0;
    }
    uint64_t random = 1, rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
    int threads = argc > 2 ? atoi(argv[2]) : 0;
    pthread_t all[16];
    CHECK(threads <= 16);
    for (int i = 0; i < threads; i++)
        CHECK(pthread_create(&all[i], NULL, others, NULL) == 0);
    for (uint64_t i = 1; i <= rounds; i++) {
        recorded = i;
        for (uint64_t n = target_random(&random) % 20; n > 0; n--)
            work(n), kept++;
        recorded = 0;
        if (i % 3 == 0) {
            outer(); /* pauses */
            kept++, in_pause++;
        } else {
            CALLREEL_PAUSE();
        }
        paused = i;
        for (uint64_t n = target_random(&random) % 40; n > 0; n--)
            work(n), in_pause++;
        deep(3);
        if (i % 5 == 0)
            CALLREEL_PAUSE(); /* it stays so */
        paused = 0;
        CALLREEL_RESUME();
        if (i % 7 == 0)
            CALLREEL_RESUME();
    }
    stop = 1;
    for (int i = 0; i < threads; i++)
        pthread_join(all[i], NULL);
    printf("pauses kept=%lu in_pause=%lu rounds=%lu sure=%lu never=%lu busy=%lu ok\n", (unsigned long)kept, (unsigned long)in_pause,
           (unsigned long)rounds, (unsigned long)sure, (unsigned long)never, (unsigned long)busy_calls);
    return 0;
}
