// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A processor of its own that isn't: an indexer of the same process works where the requests' threads have to run. */
#include "server.h"

FN static void index_batch(void)
{
    for (unsigned i = 0; i < 90; i++)
        mix(&i, sizeof i, 900);
}

static void indexer(void)
{
    while (serving) {
        pause_ms(300);
        index_batch();
    }
}

FN static void score(struct request *r) { mix(r->text, 100, 40); }

FN static void rank_page(struct request *r)
{
    parse_request(r);
    for (int i = 0; i < 4; i++)
        score(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    stay_on(0);
    background("indexer", indexer);
    return serve(argc, argv, &(struct server){.handle = rank_page, .threads = 1, .pause_us = 300, .slow_ms = 12});
}
