// For cc, not for the go command, which takes a .c file in a package for cgo.

/* Deep below a recursion: one node of a template calls a function that is slow. */
#include "server.h"

FN static unsigned call_builtin(unsigned which, uint64_t seed) { return mix(&seed, sizeof seed, which == 7 ? 12000 : 6); }

FN static unsigned render_node(struct request *r, unsigned depth, unsigned at)
{
    unsigned v = mix(&at, sizeof at, 2);
    if (depth == 0)
        return v ^ call_builtin(r->odd && at == 5 ? 7 : at % 6, r->seed);
    for (unsigned i = 0, n = 2; i < n; i++)
        v ^= render_node(r, depth - 1, at * 2 + i);
    return v;
}

FN static void show_template(struct request *r)
{
    parse_request(r);
    r->seed ^= (uint64_t)render_node(r, 3 + (draw(&r->seed) & 1), 0) * 2;
    render_reply(r);
}

int main(int argc, char **argv)
{
    return serve(argc, argv, &(struct server){.handle = show_template, .every_ms = 300, .slow_ms = 4});
}
