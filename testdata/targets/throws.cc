/*
 * throws TIMES: one thread, on a line on stdin, leaves frames in every way but
 * by returning, TIMES times each: by an exception that is caught above, that is
 * caught and thrown again, that another language has thrown (a foreign class),
 * by forced unwinding (pthread_exit in a thread of its own), and by longjmp.
 * Every frame's object must be destroyed, but those that longjmp leaves. It
 * prints "counted" then, and stays until stdin ends.
 */
#include <csetjmp>
#include <cstdint>
#include <cstring>
#include <cxxabi.h>
#include <pthread.h>
#include <stdexcept>
#include <unwind.h>

#include "target.h"

namespace {

volatile int64_t destroyed, forced, cleaned;
jmp_buf out;

struct Counted {
    ~Counted() { destroyed = destroyed + 1; }
};

/* An exception of a class that C++ doesn't know. */
struct Foreign {
    _Unwind_Exception header;
    int value;
};

void clean(_Unwind_Reason_Code, _Unwind_Exception *e)
{
    CHECK(reinterpret_cast<Foreign *>(e)->value == 7);
    cleaned = cleaned + 1;
}

Foreign foreign;

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
        forced = forced + 1;
        throw;
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

} // extern "C"

static void *thread(void *)
{
    force_passed_on(1);
    return nullptr;
}

int main(int argc, char **argv)
{
    int times = argc > 1 ? atoi(argv[1]) : 1000;
    target_ready();
    target_wait_line();
    for (int i = 0; i < times; i++) {
        CHECK(caught_in(i) == i + 1);
        try {
            rethrown_from(i);
            CHECK(false);
        } catch (const std::runtime_error &) {
        }
        CHECK(foreign_caught_in(i) == i + 1);
        pthread_t t;
        CHECK(pthread_create(&t, nullptr, thread, nullptr) == 0 && pthread_join(t, nullptr) == 0);
        CHECK(longjmp_came_to(i) == i + 1);
        CHECK(returns(i) == i * 3);
    }
    CHECK(destroyed == 5LL * times);
    CHECK(cleaned == times);
    CHECK(forced == times);
    printf("counted throws=%d ok\n", times);
    fflush(stdout);
    target_wait_line();
    printf("throws throws=%d ok\n", times);
    return 0;
}
