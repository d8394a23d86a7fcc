// For cc, not for the go command, which takes a .c file in a package for cgo.

/* No cause at all: the sizes of requests have a heavy tail, Pareto's with an exponent of 2. */
#include "server.h"

FN static void read_record(struct request *r) { mix(r->text, 200, 10); }

FN static void read_records(struct request *r)
{
    double u = 1 - uniform(&r->seed), root = 1;
    for (unsigned i = 0; i < 30; i++) /* 1/sqrt(u), for no libm */
        root = (root + u / root) / 2;
    for (unsigned i = 0, n = (unsigned)(10 / root); i < n; i++)
        read_record(r);
}

FN static void fetch_mailbox(struct request *r)
{
    parse_request(r);
    read_records(r);
    render_reply(r);
}

int main(int argc, char **argv) { return serve(argc, argv, &(struct server){.handle = fetch_mailbox, .pause_us = 1000}); }
