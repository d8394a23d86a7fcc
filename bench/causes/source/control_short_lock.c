// For cc, not for the go command, which takes a .c file in a package for cgo.

/* No cause at all: two threads share a lock, which each holds for some microseconds and often. */
#include "server.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t totals[64];

FN static void add_total(struct request *r, unsigned i)
{
    pthread_mutex_lock(&lock);
    totals[i % 64] += mix(r->text, 200, 4);
    pthread_mutex_unlock(&lock);
}

FN static void add_totals(struct request *r)
{
    for (unsigned i = 0, n = 40 + (unsigned)(exponential(&r->seed) * 20); i < n; i++)
        add_total(r, i);
}

FN static void book_trip(struct request *r)
{
    parse_request(r);
    add_totals(r);
    render_reply(r);
}

int main(int argc, char **argv) { return serve(argc, argv, &(struct server){.handle = book_trip, .pause_us = 300}); }
