// For cc, not for the go command, which takes a .c file in a package for cgo.

/* No cause at all: half of the requests have twice as much to do. */
#include "server.h"

FN static void count_votes(struct request *r) { mix(r->text, 200, 80 + (unsigned)(uniform(&r->seed) * 40)); }

FN static void tally(struct request *r)
{
    parse_request(r);
    for (unsigned i = 0, n = draw(&r->seed) & 1 ? 8 : 4; i < n; i++)
        count_votes(r);
    render_reply(r);
}

int main(int argc, char **argv) { return serve(argc, argv, &(struct server){.handle = tally, .pause_us = 1200}); }
