/*
 * forger MODE [ARG]...: a process that is recorded and writes what it likes into
 * the ring memory, which is mapped in it for writing. The layout comes by -D.
 *
 *   claim PID...  events of threads that say they are of those processes
 *   register      threads that there are not, without a pause
 *   drop          the same, each with calls that were dropped
 *   write         the same, each with an event
 *   exec PID...   requests to be watched while the program is replaced, without
 *                 a pause, of those processes, of this one and of any other
 *   scribble SEED words all over the memory, while another thread and children
 *                 call what is recorded; it may end by that
 *   daemon        no forging: a grandchild that is nobody's child any more, and
 *                 replaces its program when told to
 */
#define _GNU_SOURCE
#include "target.h"
#include <linux/futex.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

static char *ring;
static uint64_t size, forged;

TRACED uint64_t step(uint64_t x)
{
    return x * 6364136223846793005u + 1442695040888963407u;
}

static uint64_t *u64(uint64_t off) { return (uint64_t *)(ring + off); }
static uint32_t *u32(uint64_t off) { return (uint32_t *)(ring + off); }

static void nap(long us)
{
    struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    nanosleep(&t, NULL);
}

/* Whether the ring memory is there; the mapping is looked for now and then. */
static int mapped(void)
{
    char line[8192], path[256], perm[5];
    uint64_t start, end;
    FILE *f = fopen("/proc/self/maps", "re");
    int found = 0;
    CHECK(f);
    while (!found && fgets(line, sizeof line, f)) {
        path[0] = 0;
        if (sscanf(line, "%lx-%lx %4s %*x %*s %*u %255s", &start, &end, perm, path) >= 3)
            found = !strcmp(path, "/memfd:callreel") && perm[1] == 'w';
    }
    fclose(f);
    ring = found ? (char *)start : NULL;
    size = found ? end - start : 0;
    return found;
}

static void enters(uint32_t pid, uint32_t tid)
{
    uint64_t n = __atomic_fetch_add(u64(HDR_REGISTERED), 1, __ATOMIC_SEQ_CST);
    uint64_t at = REGISTRY_OFF + n % REGISTRY_SIZE * REGISTRY_ENTRY;
    memcpy(ring + at + REG_NAME, "forged", 7);
    *u32(at + REG_PID) = pid;
    __atomic_store_n(u32(at + REG_TID), tid, __ATOMIC_SEQ_CST);
    forged++;
}

/* Takes a chunk as a stub does; 0 if there is none. */
static uint32_t take(void)
{
    uint64_t *pool = u64(*u32(HDR_SMALL) ? HDR_SMALL_POOL : HDR_POOL); /* there are small ones, but for armed recorders */
    uint64_t head = __atomic_load_n(pool, __ATOMIC_SEQ_CST), next;
    do {
        if (!(uint32_t)head)
            return 0;
        next = ((head >> 32) + 1) << 32 | *u32(NEXT_OFF + 4 * (uint64_t)((uint32_t)head - 1));
    } while (!__atomic_compare_exchange_n(pool, &head, next, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    return (uint32_t)head;
}

/* A thread with an entry of function 1; whether there was room for it. */
static int writes(uint32_t pid, uint32_t tid)
{
    uint64_t slot = SLOTS_OFF + (uint64_t)tid * SLOT_SIZE;
    uint32_t i = take();
    if (!i)
        return 0;
    uint64_t chunk = CHUNKS_OFF + (uint64_t)(i - 1) * CHUNK_SIZE;
    *u32(chunk + CHUNK_TID) = tid;
    *u64(chunk + CHUNK_HEADER) = 1;
    *u32(chunk + CHUNK_HEADER + 8) = 4096;
    __atomic_store_n(u32(chunk + CHUNK_HEADER + 12), 2, __ATOMIC_SEQ_CST);
    *u32(slot + SLOT_CHUNK) = i;
    __atomic_store_n(u32(slot + SLOT_FIRST), i, __ATOMIC_SEQ_CST);
    enters(pid, tid);
    return 1;
}

static void asks(uint32_t pid, uint32_t tid)
{
    uint64_t at = EXECS_OFF + (forged++ % EXEC_SLOTS << EXEC_SHIFT);
    *u32(at + EXEC_TID) = tid;
    *u32(at + EXEC_PID) = pid;
    __atomic_store_n(u32(at + EXEC_STATE), EXEC_ASKED, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(u32(HDR_EXECS), 1, __ATOMIC_SEQ_CST);
    if (forged % 64 == 0)
        syscall(SYS_futex, u32(HDR_EXECS), FUTEX_WAKE, 1, NULL, NULL, 0);
}

static __thread sigjmp_buf out; /* where a thread goes on when the memory has gone, or an address in it was scribbled over */

static void fault(int sig)
{
    siglongjmp(out, sig);
}

static void *caller(void *arg)
{
    volatile uint64_t x = 1;
    if (sigsetjmp(out, 1))
        x = 2;
    for (;;)
        x = step(x);
    return arg;
}

static void scribble(uint64_t seed)
{
    static const uint64_t often[] = {0, 1, 2, 7, 64, 1u << 31, 0xffffffff, 1ul << 63, ~0ul, CLAIM_EMPTY};
    uint64_t off = target_random(&seed), v = target_random(&seed);
    switch (target_random(&seed) % 6) {
    case 0: off %= REGISTRY_OFF; break; /* header, requests, gates, stacks */
    case 1: off = SLOTS_OFF + (uint64_t)(getpid() + off % 64) * SLOT_SIZE + off / 64 % SLOT_SIZE; break;
    case 2: off = REGISTRY_OFF + off % (REGISTRY_SIZE * REGISTRY_ENTRY); break;
    case 3: off = CHUNKS_OFF + off % 512 * CHUNK_SIZE + off / 512 % 256; break;
    case 4: off = off % (size - 8); break;
    default: off %= 0x1000;
    }
    if (target_random(&seed) % 2)
        v = often[v % (sizeof often / sizeof *often)];
    else if (target_random(&seed) % 2)
        v = 1 + v % 100000;
    memcpy(ring + (off & ~3ul) % (size - 8), &v, target_random(&seed) % 2 ? 8 : 4);
    forged++;
}

static void daemonize(char *self)
{
    int up[2];
    CHECK(pipe(up) == 0);
    fflush(NULL);
    if (fork() == 0) {
        pid_t parent = getpid();
        if (fork() == 0) {
            uint64_t x = 1;
            struct pollfd in = {.fd = up[0], .events = POLLIN};
            close(up[1]);
            while (getppid() == parent)
                x = step(x), nap(100);
            printf("orphan %d\n", (int)getpid());
            fflush(stdout);
            while (poll(&in, 1, 0) == 0)
                x = step(x), nap(1000);
            if (read(up[0], &x, 1) == 1) { /* told to go on as another program */
                execl(self, self, "child", NULL);
                _exit(127);
            }
            _exit(0);
        }
        _exit(0);
    }
    CHECK(wait(NULL) > 0);
    close(up[0]);
    char c;
    if (read(0, &c, 1) == 1)
        CHECK(write(up[1], "x", 1) == 1);
    while (read(0, &c, 1) == 1)
        ;
}

int main(int argc, char **argv)
{
    uint64_t x = 1, seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    CHECK(argc > 1);
    const char *mode = argv[1];
    if (!strcmp(mode, "child")) { /* the program of the daemon */
        for (int i = 0; i < 100; i++)
            x = step(x), nap(1000);
        printf("replaced %d\n", (int)getpid());
        return 0;
    }
    target_ready();
    if (!strcmp(mode, "daemon")) {
        target_wait_line();
        daemonize("/proc/self/exe");
        puts("forger daemon=1 ok");
        return 0;
    }
    pthread_t t;
    signal(SIGSEGV, fault);
    signal(SIGBUS, fault);
    if (!strcmp(mode, "scribble"))
        CHECK(pthread_create(&t, NULL, caller, NULL) == 0);
    sigsetjmp(out, 1);
    for (volatile uint64_t i = 0; !target_told_to_stop(); i++) {
        if (i % 64 == 0 && !mapped()) {
            x = step(x);
            nap(1000);
            i--;
            continue;
        }
        if (!strcmp(mode, "claim") || !strcmp(mode, "exec")) {
            void (*forge)(uint32_t, uint32_t) = asks;
            for (int k = 2; k < argc; k++) {
                uint32_t pid = (uint32_t)atoi(argv[k]);
                if (!strcmp(mode, "claim"))
                    writes(pid, 1000000 + (uint32_t)(i * 16 + (uint64_t)k) % 1000000);
                else
                    forge(pid, pid);
            }
            if (!strcmp(mode, "claim")) {
                nap(2000);
                continue;
            }
            for (int k = 0; k < 256; k++)
                asks((uint32_t)getpid(), (uint32_t)getpid()), asks((uint32_t)target_random(&seed) & 0x3fffff, (uint32_t)seed);
            continue;
        }
        if (!strcmp(mode, "scribble")) {
            for (int k = 0; k < 2000; k++)
                scribble(target_random(&seed));
            if (i % 64 == 0 && fork() == 0) {
                for (int k = 0; k < 1000; k++)
                    x = step(x);
                _exit(0);
            }
            while (waitpid(-1, NULL, WNOHANG) > 0)
                ;
            continue;
        }
        for (int k = 0; k < 4096; k++) {
            uint32_t tid = 1 + (uint32_t)(forged * 67 % (MAX_TID - 1));
            uint32_t pid = k % 2 ? (uint32_t)getpid() : 1 + (uint32_t)(target_random(&seed) % 4000000);
            if (!strcmp(mode, "write")) {
                if (!writes(pid, tid))
                    nap(100);
            } else {
                if (!strcmp(mode, "drop"))
                    *u64(SLOTS_OFF + (uint64_t)tid * SLOT_SIZE + SLOT_DROPPED) += 3;
                enters(pid, tid);
            }
        }
    }
    printf("forger forged=%lu ok\n", (unsigned long)forged);
    fflush(stdout);
    _exit(x == 0);
}
