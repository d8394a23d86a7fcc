// A program with 16 threads in as many states, each checking itself. It prints
// "ready", then runs until it reads a line or the end of its standard input, and prints what
// it saw: EINTR counts, signal counts, and "ok" or what went wrong.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static atomic_int done;
static atomic_int eintr;
static atomic_long handled, alarms;
static atomic_long rounds[16];
static char wrong[256];
static int idle[2], never[2];
static uint32_t word;

static void fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (!wrong[0]) vsnprintf(wrong, sizeof wrong, format, args);
    va_end(args);
}

static void count(int sig) { (void)sig; atomic_fetch_add(&handled, 1); }
static void tick(int sig) { (void)sig; atomic_fetch_add(&alarms, 1); }

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void quiet(void) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, 0);
}

// The registers hold known values for as long as the inner loop runs.
#ifdef __x86_64__
__attribute__((target("avx2"))) static void *vectors(void *arg) {
    long id = (long)arg;
    while (!done) {
        uint64_t bad = 0;
        asm volatile(
            "vpcmpeqd %%ymm14,%%ymm14,%%ymm14\n"
            "vpsrlq $7,%%ymm14,%%ymm0\n" "vpsrlq $9,%%ymm14,%%ymm1\n"
            "vpsrlq $11,%%ymm14,%%ymm2\n" "vpsrlq $13,%%ymm14,%%ymm3\n"
            "fldpi\n"
            "mov $0x1122334455667788,%%rax\n mov %%rax,%%r8\n not %%rax\n mov %%rax,%%r9\n"
            "mov $0x0f0f0f0f0f0f0f0f,%%r10\n mov %%r10,%%r11\n mov %%r10,%%r12\n mov %%r10,%%r13\n"
            "mov $0xa5a5a5a5a5a5a5a5,%%r14\n"
            "movq $0x5aa5,-8(%%rsp)\n movq $0x6bb6,-128(%%rsp)\n"
            "mov $3000000,%%ecx\n"
            "1: stc\n inc %%edx\n dec %%ecx\n jnc 2f\n jnz 1b\n"
            "cmpq $0x5aa5,-8(%%rsp)\n jne 2f\n cmpq $0x6bb6,-128(%%rsp)\n jne 2f\n"
            "mov %%r8,%%rax\n not %%rax\n cmp %%rax,%%r9\n jne 2f\n"
            "cmp %%r10,%%r11\n jne 2f\n cmp %%r12,%%r13\n jne 2f\n cmp %%r10,%%r13\n jne 2f\n"
            "mov $0xa5a5a5a5a5a5a5a5,%%rax\n cmp %%rax,%%r14\n jne 2f\n"
            "fldpi\n fcomip %%st(1),%%st\n fstp %%st(0)\n jne 2f\n"
            "vpsrlq $7,%%ymm14,%%ymm4\n vpxor %%ymm0,%%ymm4,%%ymm4\n"
            "vpsrlq $9,%%ymm14,%%ymm5\n vpxor %%ymm1,%%ymm5,%%ymm5\n vpor %%ymm5,%%ymm4,%%ymm4\n"
            "vpsrlq $11,%%ymm14,%%ymm5\n vpxor %%ymm2,%%ymm5,%%ymm5\n vpor %%ymm5,%%ymm4,%%ymm4\n"
            "vpsrlq $13,%%ymm14,%%ymm5\n vpxor %%ymm3,%%ymm5,%%ymm5\n vpor %%ymm5,%%ymm4,%%ymm4\n"
            "vptest %%ymm4,%%ymm4\n jnz 2f\n"
            "vpcmpeqd %%ymm5,%%ymm5,%%ymm5\n vpxor %%ymm14,%%ymm5,%%ymm5\n vptest %%ymm5,%%ymm5\n jnz 2f\n"
            "jmp 3f\n"
            "2: mov $1,%0\n"
            "3: vzeroupper\n"
            : "+b"(bad)
            :
            : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "cc", "memory",
              "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm14");
        if (bad) fail("thread %ld: registers changed", id);
        rounds[id]++;
        usleep(1000);
    }
    return 0;
}
#else
// The rest of a register of SVE is there only as long as nobody forgets that it is in use.
__attribute__((target("+sve"))) static uint64_t scalable(void) {
    uint64_t bad = 0;
    asm volatile(
        "mov x9, #0x7788\n movk x9, #0x1122, lsl #48\n mov x10, #0x1001\n"
        "ptrue p0.d\n pfalse p3.b\n index z5.d, x9, x10\n index z21.d, x10, x9\n"
        "mov w8, #0x4000\n lsl w8, w8, #5\n"
        "1: cmp xzr, xzr\n sub w8, w8, #1\n b.ne 2f\n cbnz w8, 1b\n"
        "ptrue p1.d\n index z6.d, x9, x10\n cmpne p2.d, p1/z, z5.d, z6.d\n b.ne 2f\n"
        "index z6.d, x10, x9\n cmpne p2.d, p1/z, z21.d, z6.d\n b.ne 2f\n"
        "cmpne p2.d, p0/z, z5.d, z21.d\n b.none 2f\n ptest p1, p3.b\n b.ne 2f\n"
        "b 3f\n"
        "2: mov %0, #1\n"
        "3:\n"
        : "+r"(bad) : : "x8", "x9", "x10", "cc", "memory", "v5", "v6", "v21", "p0", "p1", "p2", "p3");
    return bad;
}

static void *vectors(void *arg) {
    long id = (long)arg;
    int sve = (getauxval(AT_HWCAP) & HWCAP_SVE) != 0;
    while (!done) {
        uint64_t bad = 0;
        asm volatile(
            "mov x9, #0x7788\n movk x9, #0x5566, lsl #16\n movk x9, #0x1122, lsl #48\n mvn x10, x9\n"
            ".irp k, 11,12,13,14,15,16,17,20,21,22,23,24,25,26,27,28\n mov x\\k, x9\n .endr\n"
            ".irp k, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
            "dup v\\k\\().2d, x9\n .endr\n"
            "mov w8, #0x4000\n lsl w8, w8, #6\n"
            "1: cmp xzr, xzr\n sub w8, w8, #1\n b.ne 2f\n b.cc 2f\n cbnz w8, 1b\n"
            "mvn x8, x10\n cmp x8, x9\n b.ne 2f\n"
            ".irp k, 11,12,13,14,15,16,17,20,21,22,23,24,25,26,27,28\n cmp x\\k, x9\n b.ne 2f\n .endr\n"
            ".irp k, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
            "eor v\\k\\().16b, v\\k\\().16b, v0.16b\n umaxv b\\k, v\\k\\().16b\n fmov w8, s\\k\n cbnz w8, 2f\n .endr\n"
            "fmov x8, d0\n cmp x8, x9\n b.ne 2f\n"
            "b 3f\n"
            "2: mov %0, #1\n"
            "3:\n"
            : "+r"(bad)
            :
            : "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x20", "x21", "x22", "x23", "x24", "x25", "x26",
              "x27", "x28", "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13",
              "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30",
              "v31");
        if (sve) bad |= scalable();
        if (bad) fail("thread %ld: registers changed", id);
        rounds[id]++;
        usleep(1000);
    }
    return 0;
}
#endif

static void check(const char *what, int r, int want) {
    if (r == -1 && errno == EINTR) {
        eintr++;
        fprintf(stderr, "EINTR from %s\n", what);
    } else if (r != want) {
        fail("%s returned %d (%s)", what, r, r < 0 ? strerror(errno) : "");
    }
}

static void *sleeps(void *arg) {
    long id = (long)arg;
    quiet();
    while (!done) {
        double start = now();
        struct timespec t = {0, 20 * 1000 * 1000};
        check("nanosleep", nanosleep(&t, 0), 0);
        if (now() - start < 0.0199) fail("nanosleep returned after %f s", now() - start);
        rounds[id]++;
    }
    return 0;
}

static void *polls(void *arg) {
    long id = (long)arg;
    quiet();
    while (!done) {
        double start = now();
        struct pollfd p = {never[0], POLLIN, 0};
        check("poll", poll(&p, 1, 25), 0);
        if (now() - start < 0.0249) fail("poll returned after %f s", now() - start);
        rounds[id]++;
    }
    return 0;
}

static void *selects(void *arg) {
    long id = (long)arg;
    quiet();
    while (!done) {
        fd_set set;
        FD_ZERO(&set);
        FD_SET(never[0], &set);
        struct timeval t = {0, 15000};
        check("select", select(never[0] + 1, &set, 0, 0, &t), 0);
        rounds[id]++;
    }
    return 0;
}

static void *epolls(void *arg) {
    long id = (long)arg;
    quiet();
    int fd = epoll_create1(0);
    struct epoll_event e = {.events = EPOLLIN};
    epoll_ctl(fd, EPOLL_CTL_ADD, never[0], &e);
    while (!done) {
        check("epoll_wait", epoll_wait(fd, &e, 1, 30), 0);
        rounds[id]++;
    }
    return 0;
}

static void *futexes(void *arg) {
    long id = (long)arg;
    quiet();
    while (!done) {
        struct timespec t = {0, 10 * 1000 * 1000};
        int r = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, id & 1 ? &t : 0, 0, 0);
        if (r == -1 && errno == EINTR) {
            eintr++;
            fprintf(stderr, "EINTR from futex\n");
        }
        rounds[id]++;
        if (id & 1) continue;
        break;
    }
    return 0;
}

static int pipes[2];

static void *reads(void *arg) {
    long id = (long)arg;
    quiet();
    uint64_t want = 0, got;
    while (!done) {
        ssize_t n = read(pipes[0], &got, sizeof got);
        if (n == 0) break;
        check("read", n, sizeof got);
        if (n == sizeof got && got != want++) fail("read %lu, want %lu", got, want - 1);
        rounds[id]++;
    }
    return 0;
}

static void *writes(void *arg) {
    long id = (long)arg;
    quiet();
    for (uint64_t i = 0; !done; i++) {
        check("write", write(pipes[1], &i, sizeof i), sizeof i);
        usleep(500);
        rounds[id]++;
    }
    close(pipes[1]);
    return 0;
}

static void *suspends(void *arg) {
    long id = (long)arg;
    sigset_t set;
    sigfillset(&set);
    while (!done) {
        struct timespec t = {0, 20 * 1000 * 1000};
        sigset_t only;
        sigemptyset(&only);
        sigaddset(&only, SIGUSR2);
        check("sigtimedwait", sigtimedwait(&only, 0, &t) == -1 && errno == EAGAIN ? 0 : -1, 0);
        rounds[id]++;
    }
    return 0;
}

static void *idles(void *arg) {
    (void)arg;
    quiet();
    char c;
    check("read of an idle pipe", read(idle[0], &c, 1), 1);
    return 0;
}

int main(void) {
    pthread_t threads[16];
    void *(*bodies[16])(void *) = {
        vectors, vectors, vectors, sleeps, sleeps, polls, selects, epolls,
        futexes, futexes, reads, writes, suspends, idles, idles, epolls,
    };
    // Only the vector threads take signals, as an application's workers would.
    struct sigaction act = {.sa_handler = count};
    sigaction(SIGRTMIN, &act, 0);
    sigaction(SIGUSR1, &act, 0);
    act.sa_handler = tick;
    act.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &act, 0);
    sigaction(SIGPROF, &act, 0);
    if (pipe(idle) || pipe(never) || pipe(pipes)) return 1;
    sigset_t usr2;
    sigemptyset(&usr2);
    sigaddset(&usr2, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &usr2, 0);
    for (long i = 0; i < 16; i++) {
        if (bodies[i] == suspends) {
            sigset_t all, old;
            sigfillset(&all);
            pthread_sigmask(SIG_SETMASK, &all, &old);
            pthread_create(&threads[i], 0, bodies[i], (void *)i);
            pthread_sigmask(SIG_SETMASK, &old, 0);
            continue;
        }
        pthread_create(&threads[i], 0, bodies[i], (void *)i);
    }
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, 0);
    struct itimerval every = {{0, 7000}, {0, 7000}};
    setitimer(ITIMER_REAL, &every, 0);
    setitimer(ITIMER_PROF, &every, 0);
    puts("ready");
    fflush(stdout);
    char c;
    ssize_t n = read(0, &c, 1);
    if (n < 0) fail("read of standard input: %s", strerror(errno));
    memset(&every, 0, sizeof every);
    setitimer(ITIMER_REAL, &every, 0);
    setitimer(ITIMER_PROF, &every, 0);
    usleep(20000);
    done = 1;
    word = 1;
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 16, 0, 0, 0);
    if (write(idle[1], "xx", 2) != 2) return 1;
    for (int i = 0; i < 16; i++) pthread_join(threads[i], 0);
    for (int i = 0; i < 16; i++)
        if (bodies[i] != idles && bodies[i] != futexes && rounds[i] == 0) fail("thread %d made no progress", i);
    printf("eintr %d handled %ld alarms %d\n", eintr, handled, alarms > 0 ? 1 : 0);
    puts(wrong[0] ? wrong : "ok");
    return wrong[0] != 0;
}
