/*
 * cxx [THREADS]: throws through traced frames and catches, until stdin ends.
 * Every frame has something to destroy; the numbers of throws, catches and
 * destructions must agree in the end. Thrown are values and objects, from one
 * frame and from fifty, rethrown, nested in a destructor, out of a constructor,
 * and carried over to another thread.
 */
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "target.h"

namespace {

std::atomic<int64_t> thrown, caught, destroyed, made;
std::atomic<bool> stop;

struct Counted {
    Counted() { made++; }
    Counted(const Counted &) { made++; }
    ~Counted() { destroyed++; }
};

struct Failure : std::runtime_error {
    Counted held;
    int depth;
    Failure(const std::string &what, int d) : std::runtime_error(what), depth(d) {}
};

TRACED int descend(int depth, int most)
{
    Counted here;
    if (depth == most) {
        thrown++;
        throw Failure("deep", depth);
    }
    return descend(depth + 1, most) + 1;
}

TRACED int throw_value(int n)
{
    Counted here;
    if (n >= 0) {
        thrown++;
        throw n;
    }
    return n;
}

TRACED int rethrow(int n)
{
    Counted here;
    try {
        return throw_value(n);
    } catch (int &v) {
        v += 1000;
        throw;
    }
}

/* Throws and catches while another exception unwinds through it. */
struct Nesting {
    Counted held;
    TRACED ~Nesting()
    {
        try {
            throw_value(7);
        } catch (int v) {
            CHECK(v == 7);
            caught++;
        }
    }
};

TRACED int nested(int depth)
{
    Nesting n;
    return descend(0, depth);
}

struct Unfinished {
    Counted first;
    std::vector<Counted> some{3};
    TRACED explicit Unfinished(int n) { throw_value(n); }
};

TRACED int through_noexcept(int n) noexcept
{
    try {
        return throw_value(n);
    } catch (...) {
        caught++;
        return n + 1;
    }
}

TRACED void across_thread()
{
    std::exception_ptr p;
    std::thread t([&] {
        try {
            descend(0, 3);
        } catch (...) {
            p = std::current_exception();
        }
    });
    t.join();
    try {
        std::rethrow_exception(p);
    } catch (const Failure &f) {
        CHECK(f.depth == 3);
        caught++;
    }
}

TRACED void one_round(int i)
{
    try {
        descend(0, i % 50);
        CHECK(false);
    } catch (const std::exception &e) {
        CHECK(std::string(e.what()) == "deep");
        CHECK(dynamic_cast<const Failure &>(e).depth == i % 50);
        caught++;
    }
    try {
        rethrow(i);
        CHECK(false);
    } catch (int v) {
        CHECK(v == i + 1000);
        caught++;
    }
    try {
        nested(i % 9);
        CHECK(false);
    } catch (const Failure &f) {
        CHECK(f.depth == i % 9);
        caught++;
    }
    try {
        auto u = std::make_unique<Unfinished>(i);
        CHECK(false);
    } catch (int v) {
        CHECK(v == i);
        caught++;
    }
    CHECK(through_noexcept(i) == i + 1);
    if (i % 64 == 0)
        across_thread();
}

void rounds()
{
    for (int i = 0; !stop; i = (i + 1) & 0xffffff)
        one_round(i);
}

} // namespace

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 2;
    std::vector<std::thread> all;
    one_round(0);
    for (int i = 0; i < threads; i++)
        all.emplace_back(rounds);
    target_ready();
    target_wait_line();
    stop = true;
    for (auto &t : all)
        t.join();
    CHECK(thrown == caught);
    CHECK(made == destroyed);
    printf("cxx thrown=%lld caught=%lld ok\n", (long long)thrown, (long long)caught);
    return 0;
}
