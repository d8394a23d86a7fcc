// For cc, not for the go command, which takes a .c file in a package for cgo.

/* No cause at all: each request has a little more to do than the one before, as a list grows. */
#include "server.h"

FN static void scan_part(struct request *r) { mix(r->text, 200, 20 + (unsigned)(uniform(&r->seed) * 10)); }

FN static void scan_list(struct request *r)
{
    for (unsigned i = 0, n = 10 + r->id / 150; i < n; i++)
        scan_part(r);
}

FN static void add_entry(struct request *r)
{
    parse_request(r);
    scan_list(r);
    render_reply(r);
}

int main(int argc, char **argv) { return serve(argc, argv, &(struct server){.handle = add_entry, .pause_us = 1200}); }
