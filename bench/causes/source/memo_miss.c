// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A miss: what is remembered for ordinary requests has to be computed anew for an address that was never seen. */
#include "server.h"

static struct {
    unsigned key;
    uint32_t route;
} memo[256];

FN static uint32_t relax_edge(unsigned from, unsigned to) { return mix(&from, sizeof from, 3 + to % 3); }

FN static uint32_t compute_route(unsigned key)
{
    uint32_t best = 0;
    for (unsigned i = 0; i < 200; i++)
        for (unsigned k = 0; k < 100; k++)
            best ^= relax_edge(key + i, k);
    return best;
}

FN static uint32_t find_route(unsigned key)
{
    unsigned slot = key % 256;
    if (memo[slot].key != key) {
        memo[slot].route = compute_route(key);
        memo[slot].key = key;
    }
    return memo[slot].route;
}

FN static void plan_trip(struct request *r)
{
    parse_request(r);
    for (unsigned i = 0; i < 8; i++)
        r->seed ^= find_route(r->odd && i == 5 ? 1000 + r->id : 1 + (r->id + i) % 200) | 1;
    render_reply(r);
}

int main(int argc, char **argv)
{
    for (unsigned i = 1; i <= 200; i++)
        memo[i].key = i;
    return serve(argc, argv, &(struct server){.handle = plan_trip, .threads = 1, .every_ms = 300, .slow_ms = 5});
}
