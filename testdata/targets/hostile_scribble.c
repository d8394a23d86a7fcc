/*
 * hostile_scribble all|most|idle|registry: a process that writes whatever it likes
 * into the ring memory, all the time: "all" everywhere, "most" and "idle" everywhere
 * but where that would only end the recording, "registry" as many threads as there
 * can be, one after the other. Another thread makes calls that are recorded, but for
 * "idle" only until then: what it does later is mostly its own end.
 */
#define _GNU_SOURCE
#include "hostile.h"
#include <linux/futex.h>
#include <pthread.h>
#include <setjmp.h>

static const char *mode;
static volatile int scribbling;
static __thread sigjmp_buf again;
static __thread int armed;

static void fault(int sig)
{
    if (armed)
        siglongjmp(again, 1);
    _exit(128 + sig);
}

static uint64_t value(uint64_t *seed, char *ring, uint64_t size)
{
    uint64_t r = target_random(seed);
    switch (r >> 60) {
    case 0: return 0;
    case 1: return 1;
    case 2: return ~0ul;
    case 3: return 1ul << (r & 63);
    case 4: return r & 0xff;
    case 5: return (uint64_t)ring + (r & (size - 1));
    case 6: return CLAIM_EMPTY | ((uint64_t)ring + CHUNKS_OFF + (r & 0xffff0));
    case 7: return CLAIM_EMPTY | (r & 0xffffffffffff);
    case 8: return (r & 0x3ff) << 32 | (r >> 10 & 0x3ff);
    case 9: return (uint32_t)gettid();
    case 10: return ~0ul << (r & 63);
    default: return r;
    }
}

static uint64_t place(uint64_t *seed, uint64_t size)
{
    uint64_t r = target_random(seed), at;
    switch (r >> 60) {
    case 0: case 1: case 2: case 3: case 4: at = r % 0x1000; break; /* header and requests */
    case 5: at = r % 0x20000; break;                                /* gates, chunks */
    case 6: case 7: at = REGISTRY_OFF + r % 0x10000; break;
    case 8: case 9: at = SLOTS_OFF + (uint64_t)(gettid() - (int)(r % 3)) * SLOT_SIZE + r / 7 % SLOT_SIZE; break;
    case 10: case 11: at = CHUNKS_OFF + (r % 1024 << 16) + r / 1024 % 64; break; /* chunks' headers */
    case 12: case 13: at = CHUNKS_OFF + r % (8 << 20); break;
    case 14: at = SLOTS_OFF + r % (1 << 22); break;
    default: at = r % size; break;
    }
    return at % (size - 8) & ~7ul;
}

static void *scribble(void *arg)
{
    uint64_t seed = (uint64_t)getpid();
    char *last = NULL;
    for (;;) {
        struct region r;
        sleep_us(1000);
        if (!find_whole(&r, "/memfd:callreel"))
            continue;
        char *ring = (char *)r.start;
        uint64_t size = r.end - r.start;
        armed = 1;
        if (sigsetjmp(again, 1))
            continue; /* it has gone, or isn't there yet */
        if (ring != last)
            sleep_us(200000); /* until recording is on */
        last = ring;
        scribbling = 1;
        for (uint64_t i = 0; i < 200000; i++) {
            if (!strcmp(mode, "registry")) {
                _Atomic uint64_t *count = (void *)(ring + HDR_REGISTERED);
                uint64_t n = (*count)++;
                char *entry = ring + REGISTRY_OFF + n % REGISTRY_SIZE * REGISTRY_ENTRY;
                *(uint32_t *)(entry + REG_PID) = (uint32_t)getpid();
                *(uint32_t *)(entry + REG_TID) = (uint32_t)(1 + n % (MAX_TID - 1));
                continue;
            }
            uint64_t at = place(&seed, size), v = value(&seed, ring, size);
            if (strcmp(mode, "all") && (at == HDR_SANDBOXED || at == HDR_FOLLOW || at == HDR_MAGIC))
                continue;
            *(volatile uint64_t *)(ring + at) = v;
            if (at == HDR_EXECS)
                syscall(SYS_futex, ring + at, FUTEX_WAKE, 1, NULL, NULL, 0);
        }
    }
    return arg;
}

static void *work(void *arg)
{
    static __thread char stack[1 << 16];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternate, NULL);
    armed = 1;
    volatile uint64_t i = 0;
    sigsetjmp(again, 1);
    for (;; i++) {
        if (strcmp(mode, "idle") || !scribbling)
            hostile_work(i);
        if (i % 64 == 0)
            sleep_us(50);
    }
    return arg;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    mode = argv[1];
    struct sigaction sa = {.sa_handler = fault, .sa_flags = SA_ONSTACK | SA_NODEFER};
    sigaction(SIGSEGV, &sa, NULL);
    sigaction(SIGBUS, &sa, NULL);
    sigaction(SIGILL, &sa, NULL);
    sigaction(SIGTRAP, &sa, NULL);
    sigaction(SIGFPE, &sa, NULL);
    pthread_t a, b;
    CHECK(pthread_create(&a, NULL, scribble, NULL) == 0 && pthread_create(&b, NULL, work, NULL) == 0);
    target_ready();
    while (!target_told_to_stop())
        sleep_us(1000);
    puts("scribble ok");
    fflush(stdout);
    _exit(0);
}
