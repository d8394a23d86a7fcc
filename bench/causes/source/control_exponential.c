// For cc, not for the go command, which takes a .c file in a package for cgo.

/* No cause at all: the work of each request is drawn from an exponential distribution. */
#include "server.h"

FN static void do_step(struct request *r) { r->seed ^= mix(r->text, 200, 10) | 1; }

FN static void do_work(struct request *r)
{
    for (unsigned i = 0, n = 4 + (unsigned)(exponential(&r->seed) * 20); i < n; i++)
        do_step(r);
}

FN static void handle_any(struct request *r)
{
    parse_request(r);
    do_work(r);
    render_reply(r);
}

int main(int argc, char **argv) { return serve(argc, argv, &(struct server){.handle = handle_any, .threads = 1, .pause_us = 600}); }
