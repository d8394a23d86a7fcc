/*
 * A stack of C++ functions with frames of different sizes, and what is done at the
 * bottom of it.
 *
 *   deep LEVELS [FILE]   1 to 60 functions; reads orders from stdin, one a line,
 *                        until it ends:
 *     WALKER CALLS         walks its own stack so often, prints "NS FRAMES":
 *                          nanoseconds of thread CPU time a frame
 *     gaps                 watches the clock when FILE says so, until it is killed,
 *                          and keeps in FILE (struct gaps) how long it was stopped
 *   deep work            60 functions, the innermost ten at work until it is killed
 *
 * Walkers: fp, a loop along frame pointers; with -DLIBUNWIND trace
 * (unw_backtrace) and step (unw_step), else libgcc (_Unwind_Backtrace). They are
 * two binaries, since libunwind takes the place of libgcc's functions.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <utility>
#include <x86intrin.h>
#ifdef LIBUNWIND
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#else
#include <unwind.h>
#endif

#define ALONE __attribute__((noipa))

namespace {

enum { MOST = 256 };
void *found[MOST];
const uint64_t *stack_end; /* no frame record that is followed lies beyond */
bool working;

/* As bench/watched.go has it. */
struct gaps {
    volatile uint64_t round;   /* from outside: watch when it is odd, anew when it changes */
    volatile uint64_t seen;    /* the round that has begun */
    volatile uint64_t beats;   /* looks at the clock, of all rounds */
    volatile uint64_t largest; /* ticks between two looks in this round */
    volatile double ns_per_tick;
};
gaps *shared;

double now_ns(clockid_t clock)
{
    timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The least that a walk can be: two loads and two comparisons a frame. */
ALONE size_t walk_fp()
{
    const uint64_t *at = (const uint64_t *)__builtin_frame_address(0), *from = at;
    size_t n = 0;
    while (n < MOST && at >= from && at < stack_end) {
        found[n++] = (void *)at[1];
        from = at + 2;
        at = (const uint64_t *)at[0];
    }
    return n;
}

#ifdef LIBUNWIND
ALONE size_t walk_trace()
{
    return (size_t)unw_backtrace(found, MOST);
}

ALONE size_t walk_step()
{
    unw_context_t context;
    unw_cursor_t cursor;
    unw_getcontext(&context);
    unw_init_local(&cursor, &context);
    size_t n = 0;
    do {
        unw_word_t pc = 0;
        unw_get_reg(&cursor, UNW_REG_IP, &pc);
        found[n++] = (void *)pc;
    } while (n < MOST && unw_step(&cursor) > 0);
    return n;
}
#else
_Unwind_Reason_Code add(_Unwind_Context *context, void *count)
{
    size_t &n = *(size_t *)count;
    if (n == MOST)
        return _URC_END_OF_STACK;
    found[n++] = (void *)_Unwind_GetIP(context);
    return _URC_NO_REASON;
}

ALONE size_t walk_libgcc()
{
    size_t n = 0;
    _Unwind_Backtrace(add, &n);
    return n;
}
#endif

size_t (*walker(const char *name))()
{
    if (strcmp(name, "fp") == 0)
        return walk_fp;
#ifdef LIBUNWIND
    if (strcmp(name, "trace") == 0)
        return walk_trace;
    if (strcmp(name, "step") == 0)
        return walk_step;
#else
    if (strcmp(name, "libgcc") == 0)
        return walk_libgcc;
#endif
    return nullptr;
}

void watch_gaps()
{
    double begun = now_ns(CLOCK_MONOTONIC), took;
    uint64_t from = __rdtsc();
    do
        took = now_ns(CLOCK_MONOTONIC) - begun;
    while (took < 100e6);
    shared->ns_per_tick = took / (double)(__rdtsc() - from);
    for (uint64_t beats = 0;;) {
        while (shared->round % 2 == 0) { /* the machine is shared */
            timespec pause = {0, 50000};
            nanosleep(&pause, nullptr);
        }
        uint64_t round = shared->round, largest = 0;
        shared->largest = 0;
        shared->seen = round;
        for (uint64_t last = __rdtsc(); shared->round == round; shared->beats = ++beats) {
            uint64_t now = __rdtsc();
            if (now - last > largest)
                shared->largest = largest = now - last;
            last = now;
        }
    }
}

/* It waits in here, not in the C library, which keeps no frame pointers. */
__attribute__((always_inline)) inline bool read_line(char *line, size_t size)
{
    size_t n = 0;
    while (n + 1 < size) {
        long got;
        __asm__ volatile("syscall" : "=a"(got) : "a"(SYS_read), "D"(0), "S"(line + n), "d"(1) : "rcx", "r11", "memory");
        if (got != 1)
            return false;
        if (line[n++] == '\n')
            break;
    }
    line[n] = 0;
    return true;
}

ALONE uint64_t bottom(uint64_t x)
{
    char line[64], name[16];
    unsigned long long calls;
    printf("ready\n");
    fflush(stdout);
    while (read_line(line, sizeof line)) {
        if (strcmp(line, "gaps\n") == 0 && shared != nullptr)
            watch_gaps();
        if (sscanf(line, "%15s %llu", name, &calls) != 2 || calls == 0 || walker(name) == nullptr)
            exit(2);
        size_t (*walk)() = walker(name), frames = 0;
        for (unsigned long long k = 0; k < calls / 20 + 1; k++)
            frames = walk();
        double start = now_ns(CLOCK_THREAD_CPUTIME_ID);
        for (unsigned long long k = 0; k < calls; k++)
            x += walk();
        double took = now_ns(CLOCK_THREAD_CPUTIME_ID) - start;
        printf("%.4f %zu\n", took / (double)calls / (double)frames, frames);
        fflush(stdout);
    }
    return x;
}

ALONE uint64_t chew(uint64_t x)
{
    for (int k = 0; k < 500; k++)
        x = (x ^ x >> 7) * 0x9e3779b97f4a7c15u;
    return x;
}

/* Some levels keep more registers, some more memory. */
template <int N> ALONE uint64_t level(uint64_t a, uint64_t b)
{
    volatile uint64_t room[N % 7 * 5 + 1];
    room[0] = a;
    uint64_t r = 0;
    do {
        if (N <= 10 && working)
            r += chew(a ^ r);
        r += level<N - 1>(a + b + r, b ^ N) * (a | 1) + b + room[0];
    } while (N == 10 && working);
    return r;
}

template <> ALONE uint64_t level<0>(uint64_t a, uint64_t b)
{
    uint64_t r = working ? chew(a ^ b) : bottom(a ^ b);
    __asm__ volatile("" : "+r"(r));
    return r + 1;
}

enum { LEVELS = 60 };

template <int... N> uint64_t start(int levels, std::integer_sequence<int, N...>)
{
    static uint64_t (*const entries[])(uint64_t, uint64_t) = {level<N>...};
    return entries[levels - 1](1, 2); /* the innermost function has no number */
}

bool share(const char *path)
{
    int fd = open(path, O_RDWR);
    void *at = fd < 0 ? MAP_FAILED : mmap(nullptr, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return false;
    shared = (gaps *)at;
    return true;
}

}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    working = strcmp(argv[1], "work") == 0;
    int levels = working ? LEVELS : atoi(argv[1]);
    if (levels < 1 || levels > LEVELS || (argc > 2 && !share(argv[2])))
        return 2;
#ifdef LIBUNWIND
    unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_PER_THREAD);
#endif
    stack_end = (const uint64_t *)__builtin_frame_address(0) + 1;
    uint64_t r = start(levels, std::make_integer_sequence<int, LEVELS>());
    return r == 42;
}
