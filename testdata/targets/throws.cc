/*
 * throws TIMES [THREADS]: on a line on stdin, THREADS threads (1) at once leave
 * frames in every way but by returning, TIMES times each: by an exception that is
 * caught above, that is caught and thrown again, that another language has thrown
 * (a foreign class), that comes through a future, by forced unwinding
 * (pthread_exit and pthread_cancel, each in a thread of its own), and by longjmp.
 * Every frame's object must be destroyed, but those that longjmp leaves. It
 * prints "counted" then, and stays until stdin ends.
 *
 * throws terminate: an exception leaves a destructor while another one unwinds,
 * and the terminate handler ends the program with code 3.
 */
#include <atomic>
#include <csetjmp>
#include <cstdint>
#include <cstring>
#include <cxxabi.h>
#include <exception>
#include <future>
#include <pthread.h>
#include <sched.h>
#include <stdexcept>
#include <thread>
#include <unwind.h>
#include <vector>

#include "target.h"

namespace {

std::atomic<int64_t> destroyed, forced, cleaned;
thread_local jmp_buf out;

struct Counted {
    ~Counted() { destroyed++; }
};

/* An exception of a class that C++ doesn't know. */
struct Foreign {
    _Unwind_Exception header;
    int value;
};

void clean(_Unwind_Reason_Code, _Unwind_Exception *e)
{
    CHECK(reinterpret_cast<Foreign *>(e)->value == 7);
    cleaned++;
}

thread_local Foreign foreign;

/* Has another exception thrown while it is destroyed. */
struct Throwing {
    ~Throwing() noexcept(false);
};

} // namespace

extern "C" {

TRACED int left_by_throw(int n)
{
    Counted here;
    if (n >= 0)
        throw std::runtime_error("thrown");
    return n;
}

TRACED int thrown_through(int n)
{
    Counted here;
    return left_by_throw(n) + 1;
}

TRACED int caught_in(int n)
{
    try {
        return thrown_through(n);
    } catch (const std::runtime_error &e) {
        CHECK(strcmp(e.what(), "thrown") == 0);
        return n + 1;
    }
}

TRACED int rethrown_from(int n)
{
    try {
        return left_by_throw(n);
    } catch (...) {
        throw;
    }
}

TRACED int left_by_foreign(int n)
{
    Counted here;
    memset(&foreign, 0, sizeof foreign);
    memcpy(&foreign.header.exception_class, "TESTLANG", 8);
    foreign.header.exception_cleanup = clean;
    foreign.value = 7;
    if (n >= 0)
        _Unwind_RaiseException(&foreign.header);
    return n;
}

TRACED int foreign_caught_in(int n)
{
    try {
        return left_by_foreign(n);
    } catch (...) {
        return n + 1;
    }
}

TRACED int left_by_force(int n)
{
    Counted here;
    if (n >= 0)
        pthread_exit(nullptr);
    return n;
}

TRACED int force_passed_on(int n)
{
    try {
        return left_by_force(n);
    } catch (abi::__forced_unwind &) {
        forced++;
        throw;
    }
}

TRACED int left_by_cancel(int n, std::atomic<bool> *entered)
{
    Counted here;
    *entered = true;
    for (;;)
        pause();
    return n;
}

TRACED int cancel_passed_on(int n, std::atomic<bool> *entered)
{
    Counted here;
    return left_by_cancel(n, entered) + 1;
}

TRACED int left_for_future(int n)
{
    return left_by_throw(n) + 1;
}

TRACED int future_asked_in(int n)
{
    auto f = std::async(std::launch::async, left_for_future, n);
    try {
        return f.get();
    } catch (const std::runtime_error &) {
        return n + 1;
    }
}

TRACED int left_by_longjmp(int n)
{
    if (n >= 0)
        longjmp(out, 5);
    return n;
}

TRACED int longjmp_came_to(int n)
{
    volatile int kept = n;
    if (setjmp(out) == 0)
        return left_by_longjmp(n);
    return kept + 1;
}

TRACED int returns(int n)
{
    return n * 3;
}

TRACED void left_to_terminate()
{
    Throwing here;
    left_by_throw(1);
}

TRACED void terminate_handler()
{
    puts("terminated");
    fflush(stdout);
    _exit(3);
}

} // extern "C"

Throwing::~Throwing() noexcept(false)
{
    left_by_throw(2);
}

namespace {

void *exiting(void *)
{
    force_passed_on(1);
    return nullptr;
}

void *cancelled(void *entered)
{
    cancel_passed_on(1, static_cast<std::atomic<bool> *>(entered));
    return nullptr;
}

void leave_frames(int times)
{
    for (int i = 0; i < times; i++) {
        CHECK(caught_in(i) == i + 1);
        try {
            rethrown_from(i);
            CHECK(false);
        } catch (const std::runtime_error &) {
        }
        CHECK(foreign_caught_in(i) == i + 1);
        CHECK(future_asked_in(i) == i + 1);
        pthread_t t;
        CHECK(pthread_create(&t, nullptr, exiting, nullptr) == 0 && pthread_join(t, nullptr) == 0);
        void *result;
        std::atomic<bool> entered{false};
        CHECK(pthread_create(&t, nullptr, cancelled, &entered) == 0);
        while (!entered)
            sched_yield();
        CHECK(pthread_cancel(t) == 0 && pthread_join(t, &result) == 0 && result == PTHREAD_CANCELED);
        CHECK(longjmp_came_to(i) == i + 1);
        CHECK(returns(i) == i * 3);
    }
}

} // namespace

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "terminate") == 0) {
        std::set_terminate(terminate_handler);
        try {
            left_to_terminate();
        } catch (...) {
        }
        return 0;
    }
    int times = argc > 1 ? atoi(argv[1]) : 1000, threads = argc > 2 ? atoi(argv[2]) : 1;
    target_ready();
    target_wait_line();
    std::vector<std::thread> all;
    for (int i = 0; i < threads; i++)
        all.emplace_back(leave_frames, times);
    for (auto &t : all)
        t.join();
    int64_t each = (int64_t)times * threads;
    CHECK(destroyed == 8 * each);
    CHECK(cleaned == each);
    CHECK(forced == each);
    printf("counted throws=%lld ok\n", (long long)each);
    fflush(stdout);
    target_wait_line();
    printf("throws throws=%lld ok\n", (long long)each);
    return 0;
}
