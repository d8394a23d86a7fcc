/*
 * Runs event code by hand. Its arguments are addresses of code that writes one
 * event and returns, an entry's and an exit's in turn, for the IDs 1, 2, ….
 * Commands come on stdin, a line each; each is answered by a line.
 *
 *   calls N      N traced calls, nested like a program's
 *   enter        enters one traced call; commands up to "leave" are within it
 *   leave        leaves it
 *   forget       leaves it without its exit, as by longjmp
 *   fill L       makes calls until L or L+1 events of room are left in the chunk
 *   one K        stops (int3), then one call; SIGUSR1 makes K calls
 *   one K T      the same, but SIGUSR1 then stops, and a thread makes T calls
 *   escape       from now on SIGUSR1 leaves the call of "one" by longjmp
 *   timed MIN N  calls from now on watch the clock, one in N takes MIN ticks
 *   must         prints how many of them took MIN ticks at least
 *   may          prints how many of them may have
 *   state N      N times for each code: all registers hold patterns and are compared
 *   thread NAME N  a thread of that name makes N calls and ends
 *   gate V       opens the gate, and the word that stands for another arena's,
 *                or closes them, in turn as the recorder and as a stub does
 *   wipe         makes the gate's page zero, as it is in a forked child
 *   pin DI SI DX CX  from now on these registers hold these values in "state"
 *   name NAME    prints where NAME stands
 *   fork N       a child makes N calls
 *   vfork        a child of vfork does what "state 1" does
 *   storm US     a signal each US µs, whose handler makes calls; 0 ends it
 *   crowd T N    T threads make N calls each
 *   made         prints the number of calls made
 *   room         prints the events of room, negative while there is none
 */
#define _GNU_SOURCE
#include "../../../../../testdata/targets/state.h"
#include <cpuid.h>
#include <immintrin.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define FLAG_BITS 0xcd5u

extern volatile uint64_t *selfpatch_gate;
__thread struct block state_block;
const uint64_t shape_constant = 1; /* state.S wants them */
void shape_ret(void) {}

typedef void code(void);
static code *codes[256];
static int ids;
static uint64_t gate_open;
static unsigned closed; /* how often the gate has been */
static atomic_uint_fast64_t made;
static volatile int handler_calls = 3;
static volatile uint64_t *other_gate;
static uint64_t pinned[4];
static int is_pinned;
static volatile long handler_crowd = -1;
static sigjmp_buf escape;
static volatile int escapes;
static uint64_t timed_min, timed_one;
static atomic_uint_fast64_t must, may;

static void answer(const char *format, long v)
{
    printf(format, v);
    putchar('\n');
    fflush(stdout);
}

static uint64_t next_random(uint64_t *seed)
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* One traced call: both events come from the same frame, so with the same SP. */
__attribute__((noinline)) static uint64_t tree(uint64_t budget, uint64_t *seed, int depth)
{
    uint64_t r = next_random(seed), done = 1;
    int id = r % ids;
    codes[2 * id]();
    while (done < budget && depth < 12 && (r >>= 1) & 1)
        done += tree(budget - done, seed, depth + 1);
    codes[2 * id + 1]();
    return done;
}

static uint64_t now(void)
{
    _mm_lfence();
    uint64_t t = __rdtsc();
    _mm_lfence();
    return t;
}

/* The same, with the clock watched. What a call takes is between the inner and the outer two times. */
__attribute__((noinline)) static uint64_t timed_tree(uint64_t budget, uint64_t *seed, int depth)
{
    uint64_t r = next_random(seed), done = 1;
    int id = r % ids, spins = (r >> 20) % timed_one == 0;
    uint64_t outer = now();
    codes[2 * id]();
    uint64_t inner = now();
    while (done < budget && depth < 12 && (r >>= 1) & 1)
        done += timed_tree(budget - done, seed, depth + 1);
    while (spins && now() - inner < timed_min)
        ;
    inner = now() - inner;
    codes[2 * id + 1]();
    outer = now() - outer;
    must += inner >= timed_min;
    may += outer >= timed_min;
    return done;
}

static uint64_t calls(uint64_t n, uint64_t seed)
{
    uint64_t done = 0;
    while (done < n)
        done += timed_min ? timed_tree(n - done, &seed, 0) : tree(n - done, &seed, 0);
    return done;
}

static void crowd(long threads, long n);

static void handler(int sig)
{
    made += calls(handler_calls, sig);
    if (handler_crowd >= 0) {
        __asm__ volatile("int3" ::: "memory");
        crowd(1, handler_crowd);
    }
    if (escapes)
        siglongjmp(escape, 1);
}

static void storm_handler(int sig)
{
    static atomic_int turn;
    made += calls(1 + atomic_fetch_add(&turn, 1) % 40, sig + turn);
}

static void *thread_main(void *n)
{
    made += calls((uintptr_t)n & 0xffffffff, (uintptr_t)n >> 32);
    return NULL;
}

struct named {
    char name[16];
    long calls;
};

static void *named_main(void *arg)
{
    struct named *n = arg;
    pthread_setname_np(pthread_self(), n->name);
    made += calls(n->calls, 1);
    return NULL;
}

static int64_t room(void)
{
    uint64_t *slot = (uint64_t *)(gate_open + 64ul * syscall(SYS_gettid));
    return -((int64_t)*slot >> 48);
}

static uint32_t find_width(void)
{
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_AVX))
        return 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 6) != 6)
        return 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX512F) || !(b & bit_AVX512BW) || (low & 0xe0) != 0xe0)
        return 1;
    return 2;
}

static void fill_state(struct regs *r, uint64_t *seed)
{
    for (size_t i = 0; i < sizeof *r / 8; i++)
        ((uint64_t *)r)[i] = next_random(seed);
    r->flags = (r->flags & FLAG_BITS) | 0x202;
    if (is_pinned)
        r->gpr[RDI] = pinned[0], r->gpr[RSI] = pinned[1], r->gpr[RDX] = pinned[2], r->gpr[RCX] = pinned[3];
    struct fx *fx = &r->fx;
    memset(fx->rest, 0, sizeof fx->rest);
    fx->fcw = (fx->fcw & 0x0f00) | 0x037f;
    fx->fsw &= 0x7f00;
    fx->fop = 0, fx->fip = 0, fx->fdp = 0;
    fx->mxcsr = (fx->mxcsr & 0xe07f) | 0x1f80;
    for (int i = 0; i < 8; i++)
        memset(fx->st[i] + 10, 0, 6);
    for (int i = 0; i < 16; i++)
        memcpy(r->zmm[i], fx->xmm[i], 16);
}

static void differs(int code, const char *what, int n, uint64_t got, uint64_t want)
{
    printf("code %d: %s %d is %#lx, want %#lx\n", code, what, n, got, want);
    fflush(stdout);
    exit(1);
}

static void check_state(int i, uint64_t *seed, uint32_t width)
{
    struct block *b = &state_block;
    struct regs want;
    fill_state(&b->in, seed);
    memset(&b->out, 0, sizeof b->out);
    b->callee = codes[i];
    b->width = width;
    state_call();
    want = b->in;
    want.gpr[RSP] = b->rsp;
    for (int n = 0; n < GPRS; n++)
        if (b->out.gpr[n] != want.gpr[n])
            differs(i, "register", n, b->out.gpr[n], want.gpr[n]);
    if ((b->out.flags ^ want.flags) & FLAG_BITS)
        differs(i, "flags", 0, b->out.flags, want.flags);
    if (memcmp(&b->out.fx.fcw, &want.fx.fcw, 5) != 0 || b->out.fx.mxcsr != want.fx.mxcsr)
        differs(i, "x87 or mxcsr", 0, b->out.fx.mxcsr, want.fx.mxcsr);
    for (int n = 0; n < 8; n++)
        if (memcmp(b->out.fx.st[n], want.fx.st[n], 10) != 0)
            differs(i, "st", n, 0, 0);
    for (int n = 0; n < 16; n++)
        if (memcmp(b->out.fx.xmm[n], want.fx.xmm[n], 16) != 0)
            differs(i, "xmm", n, 0, 0);
    for (int n = 0; n < (width == 2 ? 32 : 16); n++)
        if (width > 0 && memcmp(b->out.zmm[n], want.zmm[n], width == 2 ? 64 : 32) != 0)
            differs(i, "vector", n, 0, 0);
}

static void state(long n)
{
    uint64_t seed = n;
    uint32_t width = find_width();
    for (long k = 0; k < n; k++)
        for (int i = 0; i < 2 * ids; i++)
            check_state(i, &seed, width);
}

static void crowd(long threads, long n)
{
    pthread_t t[256];
    for (long i = 0; i < threads; i++)
        pthread_create(&t[i], NULL, thread_main, (void *)(uintptr_t)(n | (i + 1) << 32));
    for (long i = 0; i < threads; i++)
        pthread_join(t[i], NULL);
}

static void storm(long us)
{
    struct sigaction sa = {.sa_handler = storm_handler, .sa_flags = SA_RESTART};
    struct itimerval it = {{0, us}, {0, us}};
    sigaction(SIGALRM, &sa, NULL);
    setitimer(ITIMER_REAL, &it, NULL);
}

static void child(long n)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        calls(n, 1);
        _exit((int64_t)*selfpatch_gate <= 0 ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    answer("%ld", status);
}

static void vforked(void)
{
    int status;
    pid_t pid = vfork();
    if (pid == 0) {
        state(1);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    answer("%ld", status);
}

static void one(long k)
{
    uint64_t seed = 7;
    handler_calls = k;
    if (escapes && sigsetjmp(escape, 1) != 0) {
        __asm__ volatile("int3" ::: "memory");
        return;
    }
    __asm__ volatile("int3" ::: "memory");
    made += timed_min ? timed_tree(1, &seed, 0) : tree(1, &seed, 0);
    __asm__ volatile("int3" ::: "memory");
}

static int interpret(int depth);

__attribute__((noinline)) static void enter(int depth)
{
    int id = depth % ids;
    codes[2 * id]();
    made++;
    answer("ok", 0);
    if (interpret(depth + 1))
        codes[2 * id + 1]();
    __asm__ volatile(""); /* no tail jump, which would come from another SP */
}

static int interpret(int depth)
{
    static char given[64];
    char line[128], name[16];
    long a, b;
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (sscanf(line, "calls %ld", &a) == 1)
            made += calls(a, 1);
        else if (strcmp(line, "enter\n") == 0)
            enter(depth);
        else if (strcmp(line, "leave\n") == 0)
            return 1;
        else if (strcmp(line, "forget\n") == 0)
            return 0;
        else if (sscanf(line, "fill %ld", &a) == 1)
            while (room() > a + 1)
                made += calls(1, 1);
        else if (sscanf(line, "one %ld %ld", &a, &b) == 2) {
            handler_crowd = b;
            one(a);
        } else if (sscanf(line, "one %ld", &a) == 1)
            one(a);
        else if (sscanf(line, "timed %ld %ld", &a, &b) == 2)
            timed_min = a, timed_one = b;
        else if (strcmp(line, "escape\n") == 0)
            escapes = 1;
        else if (sscanf(line, "state %ld", &a) == 1)
            state(a);
        else if (sscanf(line, "thread %15s %ld", name, &a) == 2) {
            struct named n = {.calls = a};
            pthread_t t;
            strcpy(n.name, name);
            pthread_create(&t, NULL, named_main, &n);
            pthread_join(t, NULL);
        } else if (sscanf(line, "gate %ld", &a) == 1)
            *selfpatch_gate = *other_gate = a ? gate_open : closed++ & 1 ? 0 : gate_open | 1ul << 63;
        else if (strcmp(line, "wipe\n") == 0)
            memset((void *)selfpatch_gate, 0, 4096);
        else if (sscanf(line, "pin %lx %lx %lx %lx", pinned, pinned + 1, pinned + 2, pinned + 3) == 4)
            is_pinned = 1;
        else if (sscanf(line, "name %63s", given) == 1) {
            answer("%ld", (long)given);
            continue;
        } else if (sscanf(line, "fork %ld", &a) == 1) {
            child(a);
            continue;
        } else if (strcmp(line, "vfork\n") == 0) {
            vforked();
            continue;
        } else if (sscanf(line, "storm %ld", &a) == 1)
            storm(a);
        else if (sscanf(line, "crowd %ld %ld", &a, &b) == 2)
            crowd(a, b);
        else if (strcmp(line, "made\n") == 0) {
            answer("%ld", made);
            continue;
        } else if (strcmp(line, "must\n") == 0) {
            answer("%ld", must);
            continue;
        } else if (strcmp(line, "may\n") == 0) {
            answer("%ld", may);
            continue;
        } else if (strcmp(line, "room\n") == 0) {
            answer("%ld", room());
            continue;
        } else if (strcmp(line, "isopen\n") == 0) {
            answer("%ld", ((int64_t)*selfpatch_gate > 0) + ((int64_t)*other_gate > 0));
            continue;
        } else {
            answer("unknown command", 0);
            continue;
        }
        answer("ok", 0);
    }
    return 1;
}

int main(int argc, char **argv)
{
    signal(SIGUSR1, handler);
    gate_open = *selfpatch_gate;
    other_gate = selfpatch_gate + 64;
    for (int i = 1; i < argc && i <= 256; i++)
        codes[i - 1] = (code *)strtoul(argv[i], NULL, 16);
    ids = (argc - 1) / 2;
    interpret(0);
    return 0;
}
