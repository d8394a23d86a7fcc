// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A cache line that is shared: while another thread counts in the same line, each count has to fetch it. */
#include "server.h"

static struct {
    volatile uint64_t hits;
    volatile uint64_t bytes; /* in the same line */
} __attribute__((aligned(64))) counters;
static volatile int transferring;

FN static void count_hits(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        __atomic_fetch_add(&counters.hits, 1, __ATOMIC_SEQ_CST);
}

FN static void count_bytes(void)
{
    for (unsigned i = 0; i < 5000; i++)
        __atomic_fetch_add(&counters.bytes, i, __ATOMIC_SEQ_CST);
}

static void transfers(void)
{
    stay_on(0);
    while (serving) {
        pause_ms(250);
        for (uint64_t end = now_ns() + 80000000; now_ns() < end && serving;)
            count_bytes();
    }
}

FN static void record_visit(struct request *r)
{
    parse_request(r);
    for (unsigned i = 0; i < 20; i++)
        count_hits(20000);
    render_reply(r);
}

int main(int argc, char **argv)
{
    background("transfers", transfers);
    stay_on(1);
    return serve(argc, argv, &(struct server){.handle = record_visit, .threads = 1, .pause_us = 1000, .slow_ms = 8});
}
