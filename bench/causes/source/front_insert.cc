// For cc, not for the go command, which takes a .cc file in a package for cgo.

/* A vector that is filled from its front: each element moves all others. */
#include "server.h"
#include <vector>

FN static void add_front(std::vector<long> &list, long v) { list.insert(list.begin(), v); }

FN static void order_events(struct request *r)
{
    std::vector<long> list;
    parse_request(r);
    for (int i = 0, n = r->odd ? 9000 : 30 + (int)(uniform(&r->seed) * 20); i < n; i++)
        add_front(list, i);
    r->seed ^= (uint64_t)list[0] * 2;
    render_reply(r);
}

int main(int argc, char **argv)
{
    server s = {};
    s.handle = order_events, s.every_ms = 300, s.slow_ms = 3;
    return serve(argc, argv, &s);
}
