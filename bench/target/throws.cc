/*
 * What a throw costs, in thread CPU time.
 *
 *   throws   reads "MODE DEPTH COUNT" lines from stdin until it ends, and prints
 *            nanoseconds a throw (or a return) for each. Modes:
 *
 *   throw    an exception from DEPTH functions down, caught at the top
 *   return   the same functions return
 *
 * Every other function has an object to destroy, and so a landing pad.
 */
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>

#define ALONE __attribute__((noipa))

namespace {

volatile uint64_t destroyed;

struct Held {
    ~Held() { destroyed = destroyed + 1; }
};

ALONE uint64_t plain(uint64_t depth, bool fail);

ALONE uint64_t holding(uint64_t depth, bool fail)
{
    Held held;
    if (depth == 0) {
        if (fail)
            throw depth;
        return 1;
    }
    return plain(depth - 1, fail) + 1;
}

ALONE uint64_t plain(uint64_t depth, bool fail)
{
    if (depth == 0) {
        if (fail)
            throw depth;
        return 1;
    }
    return holding(depth - 1, fail) + 1;
}

ALONE uint64_t run(uint64_t depth, uint64_t count, bool fail)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        try {
            sum += plain(depth, fail);
        } catch (uint64_t) {
            sum++;
        }
    }
    return sum;
}

double thread_ns()
{
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

} // namespace

int main()
{
    char line[64], mode[16];
    unsigned long long depth, count;
    while (fgets(line, sizeof line, stdin) != nullptr) {
        if (sscanf(line, "%15s %llu %llu", mode, &depth, &count) != 3 || depth == 0 || count == 0)
            return 2;
        bool fail = strcmp(mode, "throw") == 0;
        if (!fail && strcmp(mode, "return") != 0)
            return 2;
        run(depth - 1, count / 20 + 1, fail);
        double start = thread_ns();
        volatile uint64_t keep = run(depth - 1, count, fail);
        double took = thread_ns() - start;
        (void)keep;
        printf("%.4f\n", took / (double)count);
        fflush(stdout);
    }
    return 0;
}
