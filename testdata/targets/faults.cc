/*
 * faults: until stdin ends, signals make unwinders start wherever a thread is.
 * Built with -fnon-call-exceptions. With an argument only the second of these threads is there, and its timer is ten times slower.
 *
 *   - Two threads load from address 0 and divide by 0; the signals' handler
 *     throws, and what was thrown is caught in the function itself, above it, or
 *     above a function that has something to destroy.
 *   - One thread is at work in small functions, and a timer's handler walks its
 *     stack, each time to the function that the thread began with.
 *   - One thread after the other is at work and lets itself be cancelled anywhere
 *     (PTHREAD_CANCEL_ASYNCHRONOUS); what its frames hold must be destroyed.
 */
#include <atomic>
#include <csignal>
#include <cstdint>
#include <pthread.h>
#include <sys/syscall.h>
#include <thread>
#include <ctime>
#include <unwind.h>

#include "target.h"

namespace {

std::atomic<int64_t> caught, alive;
std::atomic<bool> stop;

struct Held {
    Held() { alive++; }
    ~Held() { alive--; }
};

void throwing(int number)
{
    throw number;
}

/* The load and the division are among the first instructions. */
TRACED int load(const volatile int *p) { return *p; }
TRACED int divide(int a, int b) { return a / b; }

TRACED int catches_itself(const volatile int *p)
{
    try {
        return *p;
    } catch (int number) {
        return -number;
    }
}

TRACED int passes_on(const volatile int *p, int by)
{
    Held here;
    return by == 0 ? divide(7, by) + 1 : load(p) + 1;
}

/* On arm64 a division by 0 gives 0. */
#ifdef __aarch64__
constexpr bool division_traps = false;
#else
constexpr bool division_traps = true;
#endif

/* Without a pause: there is hardly a moment at which no handler is at work. */
void fault()
{
    while (!stop) {
        CHECK(catches_itself(nullptr) == -SIGSEGV);
        for (int by = division_traps ? 0 : 1; by < 2; by++) {
            try {
                passes_on(nullptr, by);
                CHECK(false);
            } catch (int number) {
                CHECK(number == (by == 0 ? SIGFPE : SIGSEGV));
                caught++;
            }
        }
    }
}

/* Functions that are short: most of the time is spent where a recorder's code is. */
TRACED uint64_t small(uint64_t x) { return x * 3; }
TRACED uint64_t tail(uint64_t x) { return small(x + 1); }
TRACED uint64_t saving(uint64_t x)
{
    uint64_t y = small(x), z = tail(x);
    return y ^ z ^ x;
}

std::atomic<int64_t> walks, cut;
TRACED void work();

_Unwind_Reason_Code look(_Unwind_Context *c, void *found)
{
    *(bool *)found |= _Unwind_GetRegionStart(c) == (uintptr_t)work;
    return _URC_NO_REASON;
}

void walk(int)
{
    bool found = false;
    _Unwind_Backtrace(look, &found);
    walks++;
    if (!found)
        cut++;
}

long period = 200000; /* ns */

TRACED void work()
{
    timer_t timer;
    sigevent how = {};
    how.sigev_notify = SIGEV_THREAD_ID;
    how.sigev_signo = SIGPROF;
    how._sigev_un._tid = (int)syscall(SYS_gettid);
    CHECK(timer_create(CLOCK_MONOTONIC, &how, &timer) == 0);
    itimerspec often = {{0, period}, {0, period}};
    uint64_t x = 1;
    for (bool begun = false; !stop; begun = true) {
        if (!begun)
            CHECK(timer_settime(timer, 0, &often, nullptr) == 0);
        x = saving(x); x = saving(x); x = saving(x); x = saving(x);
    }
    timer_delete(timer);
    CHECK(x != 0);
}

TRACED uint64_t cancelled_in(volatile bool *entered)
{
    uint64_t x = 1;
    *entered = true;
    for (;;)
        x = saving(x);
}

/* So that the compiler takes the call for one that may throw. */
uint64_t (*volatile opaque)(volatile bool *) = cancelled_in;

void *let_cancel(void *entered)
{
    int old;
    Held here;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
    opaque(static_cast<volatile bool *>(entered));
    return nullptr;
}

int64_t cancel()
{
    int64_t cancelled = 0;
    while (!stop) {
        pthread_t t;
        void *result;
        volatile bool entered = false;
        CHECK(pthread_create(&t, nullptr, let_cancel, const_cast<bool *>(&entered)) == 0);
        while (!entered)
            sched_yield();
        CHECK(pthread_cancel(t) == 0 && pthread_join(t, &result) == 0 && result == PTHREAD_CANCELED);
        cancelled++;
    }
    return cancelled;
}

} // namespace

int main(int argc, char **)
{
    struct sigaction thrower = {}, walker = {};
    thrower.sa_handler = throwing;
    thrower.sa_flags = SA_NODEFER;
    CHECK(sigaction(SIGSEGV, &thrower, nullptr) == 0 && sigaction(SIGFPE, &thrower, nullptr) == 0);
    walker.sa_handler = walk;
    walker.sa_flags = SA_RESTART;
    CHECK(sigaction(SIGPROF, &walker, nullptr) == 0);
    int64_t cancelled = 0;
    std::thread a, b, c, d;
    if (argc > 1) {
        period *= 10;
    } else {
        a = std::thread(fault), b = std::thread(fault), d = std::thread([&] { cancelled = cancel(); });
    }
    c = std::thread(work);
    target_ready();
    target_wait_line();
    stop = true;
    std::thread *all[] = {&a, &b, &c, &d};
    for (std::thread *t : all)
        if (t->joinable())
            t->join();
    printf("faults caught=%lld walks=%lld cut=%lld cancelled=%lld kept=%lld ok\n", (long long)caught, (long long)walks, (long long)cut, (long long)cancelled, (long long)alive);
    return 0;
}
