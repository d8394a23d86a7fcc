/*
 * sched MODE [NUMBERS]: threads that wait, run and end in ways of which they tell the truth. They begin when "go" is read.
 *
 *   waits THREADS TIMES     each thread waits TIMES times in nanosleep, futex, read of a pipe and poll, and prints for each
 *                           "wait TID BEFORE AFTER NUMBER": the clock just before and after the call, and its number
 *   wakes TIMES             one thread wakes another by a futex: "waker TID", "sleeper TID"
 *   hogs THREADS MS         all on one processor, each runs for MS: "hog TID BEGIN END WAITS", the last how often it left
 *                           the processor of itself, as the kernel counts: page faults may have to wait
 *   lives THREADS AT_ONCE   threads that live 0.1 ms: "lives THREADS"
 *   crowd THREADS           that many threads wait at once until the end
 *   mixed SECONDS           some run, some sleep, some yield, some wake one another, all until the end
 *   stints SECONDS BUSY     threads of long and short stints, and if BUSY isn't 0 some that compute: "stints TID NAME". They
 *                           all wait at the end
 *   pingpong TIMES          two threads by a futex: "switches NS", nanoseconds a switch
 *   execs                   a thread that isn't the first runs this program anew, in mode execed; others wait meanwhile
 *   renames MS              all names change all the time
 *   faults PAGES            touches as many new pages: "faulted TID FIRST LAST", the first and last address
 *   forks N                 N children, each with a thread, one after the other
 *
 * "done" is printed at the end, and the process stays until its input ends.
 */
#define _GNU_SOURCE
#include "target.h"
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int times;
static int word; /* of the futex */
static long pause_ns; /* of those that wake one another */

static uint64_t ticks(void)
{
#ifdef __x86_64__
    uint32_t low, high;
    __asm__ volatile("lfence; rdtsc; lfence" : "=a"(low), "=d"(high)::"memory");
    return (uint64_t)high << 32 | low;
#else
    uint64_t now;
    __asm__ volatile("isb; mrs %0, cntvct_el0; isb" : "=r"(now)::"memory");
    return now;
#endif
}

static uint64_t nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static int own_tid(void) { return syscall(SYS_gettid); }

static void sleep_us(long us)
{
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static void futex(int *at, int op, int value, long ns)
{
    struct timespec t = {0, ns};
    syscall(SYS_futex, at, op | FUTEX_PRIVATE_FLAG, value, ns ? &t : NULL, NULL, 0);
}

/* spin works for about as many nanoseconds. */
static void spin(uint64_t ns)
{
    if (!ns)
        return;
    for (uint64_t end = nanoseconds() + ns; nanoseconds() < end;)
        ;
}

static pthread_t start(void *(*fn)(void *), void *arg)
{
    pthread_t t;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 << 10);
    if (pthread_create(&t, &attr, fn, arg)) {
        perror("pthread_create");
        exit(1);
    }
    return t;
}

static pthread_mutex_t printing = PTHREAD_MUTEX_INITIALIZER;

static void *waits(void *arg)
{
    static const int number[] = {SYS_clock_nanosleep, SYS_futex, SYS_read, SYS_ppoll};
    struct stamp {
        uint64_t before, after;
        int number;
    } *stamps = calloc(times, sizeof *stamps);
    int fds[2], nobody = 0;
    (void)arg;
    if (pipe(fds))
        exit(1);
    for (int i = 0; i < times; i++) {
        struct timespec t = {0, 200000};
        char byte;
        struct pollfd p = {fds[0], POLLIN, 0};
        stamps[i].number = number[i % 4];
        if (i % 4 == 2 && write(fds[1], "x", 1) != 1)
            exit(1);
        spin(20000);
        stamps[i].before = ticks();
        switch (i % 4) {
        case 0: clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL); break;
        case 1: syscall(SYS_futex, &nobody, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0); break;
        case 2: stamps[i].number = read(fds[0], &byte, 1) == 1 ? -1 : 0; break; /* doesn't wait */
        case 3: syscall(SYS_ppoll, &p, 1, &t, NULL, 8); break;
        }
        stamps[i].after = ticks();
    }
    pthread_mutex_lock(&printing);
    for (int i = 0; i < times; i++)
        if (stamps[i].number >= 0)
            printf("wait %d %llu %llu %d\n", own_tid(), (unsigned long long)stamps[i].before, (unsigned long long)stamps[i].after, stamps[i].number);
    pthread_mutex_unlock(&printing);
    free(stamps);
    return NULL;
}

static void *hog(void *arg)
{
    struct rusage before, after;
    uint64_t begin, end;
    getrusage(RUSAGE_THREAD, &before);
    begin = ticks();
    spin((uint64_t)(long)arg * 1000000);
    end = ticks();
    getrusage(RUSAGE_THREAD, &after);
    pthread_mutex_lock(&printing);
    printf("hog %d %llu %llu %ld\n", own_tid(), (unsigned long long)begin, (unsigned long long)end, after.ru_nvcsw - before.ru_nvcsw);
    pthread_mutex_unlock(&printing);
    return NULL;
}

static void *sleeper(void *arg)
{
    (void)arg;
    printf("sleeper %d\n", own_tid());
    fflush(stdout);
    for (int i = 0; i < times; i++) {
        while (!__atomic_load_n(&word, __ATOMIC_SEQ_CST))
            futex(&word, FUTEX_WAIT, 0, 0);
        __atomic_store_n(&word, 0, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

static void *short_life(void *arg)
{
    (void)arg;
    spin(100000);
    return NULL;
}

static void *wait_for_ever(void *arg)
{
    static int never;
    (void)arg;
    for (;;)
        futex(&never, FUTEX_WAIT, 0, 0);
    return NULL;
}

static void *runs(void *arg)
{
    (void)arg;
    for (;;)
        spin(100000);
    return NULL;
}

static void *sleeps(void *arg)
{
    for (;;) {
        spin(30000);
        sleep_us((long)arg);
    }
    return NULL;
}

static void *yields(void *arg)
{
    (void)arg;
    for (;;) {
        spin(50000);
        sched_yield();
    }
    return NULL;
}

static void *pings(void *arg)
{
    int me = (long)arg;
    for (int i = 0; i < times; i++) {
        while (__atomic_load_n(&word, __ATOMIC_SEQ_CST) != me)
            futex(&word, FUTEX_WAIT, 1 - me, 0);
        spin(pause_ns);
        __atomic_store_n(&word, 1 - me, __ATOMIC_SEQ_CST);
        futex(&word, FUTEX_WAKE, 1, 0);
    }
    return NULL;
}

/* Threads of mode stints. */
struct stint {
    const char *name;
    uint64_t run_ns, every_ns; /* every_ns 0: without end */
    int alone;                 /* on processor 0 */
};

static int over, at_end; /* of mode stints; how many threads have seen that */

static void *ends_waiting(void)
{
    __atomic_add_fetch(&at_end, 1, __ATOMIC_SEQ_CST);
    return wait_for_ever(NULL);
}

static void say_stints(const char *name)
{
    pthread_mutex_lock(&printing);
    printf("stints %d %s\n", own_tid(), name);
    fflush(stdout);
    pthread_mutex_unlock(&printing);
}

static void *stints(void *arg)
{
    const struct stint *s = arg;
    struct timespec at;
    if (s->alone) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(0, &one);
        sched_setaffinity(0, sizeof one, &one);
    }
    prctl(PR_SET_TIMERSLACK, 1);
    say_stints(s->name);
    clock_gettime(CLOCK_MONOTONIC, &at);
    while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST)) {
        spin(s->run_ns);
        if (!s->every_ns)
            continue;
        at.tv_nsec += s->every_ns;
        at.tv_sec += at.tv_nsec / 1000000000;
        at.tv_nsec %= 1000000000;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    }
    return ends_waiting();
}

static void *pings_stints(void *arg)
{
    int me = (long)arg;
    say_stints("pingpong");
    while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST)) {
        if (__atomic_load_n(&word, __ATOMIC_SEQ_CST) != me) {
            futex(&word, FUTEX_WAIT, 1 - me, 0);
            continue;
        }
        spin(10000);
        __atomic_store_n(&word, 1 - me, __ATOMIC_SEQ_CST);
        futex(&word, FUTEX_WAKE, 1, 0);
    }
    return ends_waiting();
}

static void *executes(void *path)
{
    sleep_us(2000);
    execl(path, path, "execed", (char *)NULL);
    exit(1);
}

static void *renames(void *arg)
{
    char name[16];
    uint64_t end = nanoseconds() + (uint64_t)(long)arg * 1000000;
    for (int i = 0; nanoseconds() < end; i++) {
        snprintf(name, sizeof name, "n%d", i);
        prctl(PR_SET_NAME, name);
    }
    return NULL;
}

static long number(char **argv, int n) { return argv[1] && argv[2] && (n == 2 || argv[3]) ? atol(argv[n]) : 0; }

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    long n = argc > 2 ? number(argv, 2) : 0, m = argc > 3 ? number(argv, 3) : 0;
    pthread_t *threads = calloc((n > 0 ? n : 0) + 16, sizeof *threads);
    char line[16];

    times = m;
    if (!strcmp(mode, "execed")) {
        pthread_join(start(short_life, NULL), NULL);
        puts("done");
        fflush(stdout);
        while (fgets(line, sizeof line, stdin))
            ;
        return 0;
    }
    if (!strcmp(mode, "crowd"))
        for (long i = 0; i < n; i++)
            start(wait_for_ever, NULL);
    if (!strcmp(mode, "execs"))
        for (int i = 0; i < 4; i++)
            start(wait_for_ever, NULL);
    puts("ready");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        return 0;
    if (!strcmp(mode, "waits")) {
        for (long i = 0; i < n; i++)
            threads[i] = start(waits, NULL);
        for (long i = 0; i < n; i++)
            pthread_join(threads[i], NULL);
    } else if (!strcmp(mode, "wakes")) {
        times = n;
        threads[0] = start(sleeper, NULL);
        printf("waker %d\n", own_tid());
        for (int i = 0; i < times; i++) {
            while (__atomic_load_n(&word, __ATOMIC_SEQ_CST))
                sched_yield();
            sleep_us(200);
            __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
            futex(&word, FUTEX_WAKE, 1, 0);
        }
        pthread_join(threads[0], NULL);
    } else if (!strcmp(mode, "hogs")) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(0, &one);
        sched_setaffinity(0, sizeof one, &one);
        for (long i = 0; i < n; i++)
            threads[i] = start(hog, (void *)m);
        for (long i = 0; i < n; i++)
            pthread_join(threads[i], NULL);
    } else if (!strcmp(mode, "lives")) {
        long begun = 0, ended = 0;
        pthread_t *all = calloc(n, sizeof *all);
        while (ended < n) {
            while (begun < n && begun - ended < m)
                all[begun++] = start(short_life, NULL);
            pthread_join(all[ended++], NULL);
        }
        printf("lives %ld\n", n);
    } else if (!strcmp(mode, "mixed")) {
        times = 1 << 30;
        pause_ns = 50000;
        threads[0] = start(runs, NULL);
        threads[1] = start(runs, NULL);
        threads[2] = start(sleeps, (void *)100L);
        threads[3] = start(sleeps, (void *)1000L);
        threads[4] = start(yields, NULL);
        threads[5] = start(pings, (void *)0L);
        threads[6] = start(pings, (void *)1L);
        start(wait_for_ever, NULL);
        sleep_us(n * 1000000);
    } else if (!strcmp(mode, "stints")) {
        static const struct stint kinds[] = {
            {"computes", 100000, 0, 0},          {"twice", 30000, 500000000, 0},        {"thousand", 30000, 1000000, 0},
            {"ten-thousand", 30000, 100000, 0},  {"short", 0, 50000, 0},                {"computes-pinned", 100000, 0, 1},
            {"thousand-pinned", 30000, 1000000, 1}, {"twice-pinned", 30000, 500000000, 1}, {"long", 3000000, 10000000, 0},
        };
        int begun = 2;
        for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (m || kinds[i].every_ns) {
                start(stints, (void *)&kinds[i]);
                begun++;
            }
        start(pings_stints, (void *)0L);
        start(pings_stints, (void *)1L);
        sleep_us(n * 1000000);
        over = 1;
        while (__atomic_load_n(&at_end, __ATOMIC_SEQ_CST) < begun) {
            futex(&word, FUTEX_WAKE, 2, 0);
            sleep_us(1000);
        }
    } else if (!strcmp(mode, "pingpong")) {
        uint64_t begin;
        times = n;
        begin = nanoseconds();
        threads[0] = start(pings, (void *)0L);
        threads[1] = start(pings, (void *)1L);
        pthread_join(threads[0], NULL);
        pthread_join(threads[1], NULL);
        printf("switches %.1f\n", (double)(nanoseconds() - begin) / (2.0 * n));
    } else if (!strcmp(mode, "execs")) {
        start(executes, argv[0]);
        for (;;)
            pause();
    } else if (!strcmp(mode, "renames")) {
        pthread_join(start(renames, (void *)n), NULL);
    } else if (!strcmp(mode, "faults")) {
        long page = sysconf(_SC_PAGESIZE);
        char *memory = mmap(NULL, n * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(memory, n * page, MADV_NOHUGEPAGE);
        for (long i = 0; i < n; i++)
            memory[i * page] = 1;
        printf("faulted %d %llu %llu\n", own_tid(), (unsigned long long)(uintptr_t)memory, (unsigned long long)(uintptr_t)(memory + (n - 1) * page));
    } else if (!strcmp(mode, "forks")) {
        for (long i = 0; i < n; i++) {
            pid_t child = fork();
            if (child == 0) {
                pthread_join(start(short_life, NULL), NULL);
                _exit(0);
            }
            printf("child %d\n", child);
            waitpid(child, NULL, 0);
        }
    }
    puts("done");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin))
        ;
    return 0;
}
