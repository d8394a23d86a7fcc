// For cc, not for the go command, which takes a .c file in a package for cgo.

/* Requests of two kinds, of which the second takes six times as long; a rare one of the first kind fills a cache. */
#include "server.h"

FN static void load_region(unsigned i) { mix(&i, sizeof i, 200); }

FN static void fill_cache(void)
{
    for (unsigned i = 0; i < 50; i++)
        load_region(i);
}

FN static void show_point(struct request *r)
{
    if (r->odd)
        fill_cache();
    mix(r->text, 200, 60 + (unsigned)(uniform(&r->seed) * 20));
}

FN static void show_region(struct request *r)
{
    for (unsigned i = 0; i < 6; i++)
        mix(r->text, 200, 160 + (unsigned)(uniform(&r->seed) * 60));
}

FN static void draw_map(struct request *r)
{
    parse_request(r);
    if (r->odd || (draw(&r->seed) & 1))
        show_point(r);
    else
        show_region(r);
    render_reply(r);
}

int main(int argc, char **argv) { return serve(argc, argv, &(struct server){.handle = draw_map, .every_ms = 300, .pause_us = 1000, .slow_ms = 4}); }
