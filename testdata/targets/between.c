/*
 * between: one thread calls near, of the program, which calls nearer, and then
 * strtoull, of the C library, until stdin ends: it goes from image to image.
 */
#include "target.h"
#include <pthread.h>
#include <stdatomic.h>

static atomic_int stop;

TRACED uint64_t nearer(uint64_t x)
{
    for (int i = 0; i < 200; i++)
        x = x * 6364136223846793005u + 1;
    return x;
}

TRACED uint64_t near(uint64_t x) { return nearer(x) ^ 1; }

static void *worker(void *arg)
{
    (void)arg;
    uint64_t x = 1;
    while (!stop) {
        x = near(x);
        CHECK(strtoull("4711", NULL, 10) == 4711);
    }
    return (void *)(uintptr_t)x;
}

int main(void)
{
    pthread_t t;
    CHECK(pthread_create(&t, NULL, worker, NULL) == 0);
    target_ready();
    target_wait_line();
    stop = 1;
    pthread_join(t, NULL);
    puts("calls ok");
    return 0;
}
