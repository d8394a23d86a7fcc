/*
 * Signals: a profiling timer whose handler runs on the alternate stack, one on
 * whatever stack is in use, and handlers that jump out. Their handlers call functions
 * that are patched too, and land at any instruction of those that are.
 */
#define _GNU_SOURCE
#include "target.h"
#include "abi.h"
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

static volatile uint64_t on_alternate, on_normal, raised, jumped;
static char alternate[64 << 10];
static __thread sigjmp_buf escape;
static __thread int has_alternate; /* the timers hit other threads as well */

TRACED uint64_t handler_work(uint64_t n)
{
    uint64_t r = 0;
    for (uint64_t i = 1; i <= n; i++)
        r += i * i;
    return r;
}

TRACED int on_stack(const void *p)
{
    return (const char *)p >= alternate && (const char *)p < alternate + sizeof alternate;
}

static void profile(int sig)
{
    char here = 0;
    int saved = errno;
    (void)sig;
    CHECK(on_stack(&here) == has_alternate);
    CHECK(handler_work(10) == 385);
    on_alternate++;
    errno = saved;
}

static void alarmed(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)context;
    CHECK(info != NULL);
    CHECK(handler_work(4) == 30);
    on_normal++;
}

static void on_raise(int sig)
{
    (void)sig;
    CHECK(handler_work(3) == 14);
    raised++;
}

static void on_jump(int sig)
{
    (void)sig;
    jumped++;
    siglongjmp(escape, 1);
}

TRACED uint64_t raise_and_count(void)
{
    uint64_t before = raised;
    CHECK(raise(SIGUSR1) == 0);
    return raised - before;
}

TRACED int fault_and_escape(void)
{
    if (sigsetjmp(escape, 1) == 0) {
        raise(SIGUSR2);
        return 0;
    }
    return 1;
}

static void handle(int sig, void (*f)(int), int flags)
{
    struct sigaction act;
    memset(&act, 0, sizeof act);
    act.sa_handler = f;
    act.sa_flags = flags;
    CHECK(sigaction(sig, &act, NULL) == 0);
}

static void timers(long profile_us, long real_us)
{
    struct itimerval p = {{0, profile_us}, {0, profile_us}}, r = {{0, real_us}, {0, real_us}};
    CHECK(setitimer(ITIMER_PROF, &p, NULL) == 0);
    CHECK(setitimer(ITIMER_REAL, &r, NULL) == 0);
}

void abi_signals_start(void)
{
    stack_t s;
    struct sigaction act;
    memset(&s, 0, sizeof s);
    s.ss_sp = alternate;
    s.ss_size = sizeof alternate;
    CHECK(sigaltstack(&s, NULL) == 0);
    has_alternate = 1;
    handle(SIGPROF, profile, SA_RESTART | SA_ONSTACK);
    handle(SIGUSR1, on_raise, SA_RESTART);
    handle(SIGUSR2, on_jump, SA_RESTART);
    memset(&act, 0, sizeof act);
    act.sa_sigaction = alarmed;
    act.sa_flags = SA_RESTART | SA_SIGINFO;
    CHECK(sigaction(SIGALRM, &act, NULL) == 0);
    timers(3000, 1700);
}

uint64_t abi_signals_round(void)
{
    uint64_t before = jumped;
    CHECK(raise_and_count() == 1);
    CHECK(fault_and_escape() == 1);
    CHECK(jumped == before + 1);
    return on_alternate + on_normal + raised + jumped;
}

void abi_signals_stop(void)
{
    timers(0, 0);
}
