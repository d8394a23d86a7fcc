// For cc, not for the go command, which takes a .c file in a package for cgo.

/* No cause at all: two processes that are nice compute beside it, as on a machine that builds something. */
#include "server.h"
#include <sys/resource.h>

static void hog(void)
{
    setpriority(PRIO_PROCESS, 0, 19);
    for (;;)
        mix("hog", 3, 1000);
}

FN static void score_bid(struct request *r) { mix(r->text, 200, 20 + (unsigned)(exponential(&r->seed) * 20)); }

FN static void answer_bid(struct request *r)
{
    parse_request(r);
    for (unsigned i = 0; i < 5; i++)
        score_bid(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    child(hog);
    child(hog);
    return serve(argc, argv, &(struct server){.handle = answer_bid, .pause_us = 1000});
}
