// For cc, not for the go command, which takes a .c file in a package for cgo.

/* No cause at all: a number of lookups that scatters, under a lock that is nearly always free. */
#include "server.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t table[4096];

FN static uint32_t look_up(uint32_t key)
{
    pthread_mutex_lock(&lock);
    uint32_t v = table[key % 4096];
    pthread_mutex_unlock(&lock);
    return v;
}

FN static void gather_values(struct request *r)
{
    for (unsigned i = 0, n = 40 + (unsigned)(exponential(&r->seed) * 80); i < n; i++)
        r->seed ^= look_up((uint32_t)draw(&r->seed)) * 2 | 1;
}

FN static void read_values(struct request *r)
{
    parse_request(r);
    gather_values(r);
    render_reply(r);
}

int main(int argc, char **argv) { return serve(argc, argv, &(struct server){.handle = read_values, .threads = 2, .pause_us = 1200}); }
