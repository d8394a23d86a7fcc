/*
 * cancel: until stdin ends, one thread after the other is cancelled
 * while it reads from a pipe and writes to it. Each has an object to destroy,
 * and a frame above with another; at its end both must be destroyed.
 */
#include <atomic>
#include <cstdint>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "target.h"

namespace {

std::atomic<int64_t> alive;

struct Counted {
    Counted() { alive++; }
    ~Counted() { alive--; }
};

int ends[2];

TRACED void pass_on()
{
    Counted here;
    char c;
    for (;;) {
        CHECK(read(ends[0], &c, 1) == 1);
        CHECK(write(ends[1], &c, 1) == 1);
    }
}

void *worker(void *)
{
    Counted here;
    pass_on();
    return nullptr;
}

} // namespace

int main()
{
    int64_t cancelled = 0;
    CHECK(pipe(ends) == 0);
    CHECK(write(ends[1], "x", 1) == 1);
    target_ready();
    while (!target_told_to_stop()) {
        pthread_t t;
        void *result;
        CHECK(pthread_create(&t, nullptr, worker, nullptr) == 0);
        usleep(200 + cancelled % 97);
        CHECK(pthread_cancel(t) == 0);
        CHECK(pthread_join(t, &result) == 0);
        CHECK(result == PTHREAD_CANCELED);
        CHECK(alive == 0);
        cancelled++;
        /* It may have been cancelled with the byte in its hands. */
        pollfd in = {ends[0], POLLIN, 0};
        if (poll(&in, 1, 0) == 0)
            CHECK(write(ends[1], "x", 1) == 1);
    }
    printf("cancel cancelled=%lld ok\n", (long long)cancelled);
    return 0;
}
