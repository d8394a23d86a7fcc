/*
 * stopped: stops itself with SIGSTOP right after "ready". A recorder must leave
 * it stopped; once continued it checks that it was, calls functions, and ends
 * with its stdin.
 */
#define _GNU_SOURCE
#include "target.h"
#include <signal.h>

static volatile sig_atomic_t continued;

static void on_continue(int sig)
{
    (void)sig;
    continued++;
}

TRACED uint64_t leaf(uint64_t x)
{
    return x * 3 + 1;
}

int main(void)
{
    uint64_t calls = 0;
    struct sigaction act = {.sa_handler = on_continue};
    sigaction(SIGCONT, &act, NULL);
    target_ready();
    raise(SIGSTOP);
    /* Only SIGCONT ends the stop; anything else that let it run is a fault. */
    CHECK(continued == 1);
    do {
        for (uint64_t i = 0; i < 1000; i++, calls++)
            CHECK(leaf(i) == i * 3 + 1);
    } while (!target_told_to_stop());
    printf("stopped leaf=%llu continued=%d ok\n", (unsigned long long)calls, (int)continued);
    return 0;
}
