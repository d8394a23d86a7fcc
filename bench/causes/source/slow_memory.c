// For cc, not for the go command, which takes a .c file in a package for cgo.

/* Memory that is slow: a graph is walked over more pages than TLB and caches hold. */
#include "server.h"
#include <sys/mman.h>

static uint32_t *graph;
static const uint32_t nodes = 64u << 20, near = 1u << 10; /* 256 MB, 4 KB */

FN static uint32_t walk_graph(uint32_t at, uint32_t reach, unsigned steps)
{
    for (unsigned i = 0; i < steps; i++)
        at = (graph[at] + at * 2654435761u + i) % reach;
    return at;
}

FN static void rank_neighbours(struct request *r)
{
    uint32_t reach = r->odd ? nodes : near;
    for (unsigned i = 0; i < 40; i++)
        r->seed ^= walk_graph((uint32_t)draw(&r->seed) % reach, reach, 4000) | 1;
}

FN static void suggest_friends(struct request *r)
{
    parse_request(r);
    rank_neighbours(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    graph = mmap(NULL, nodes * sizeof *graph, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (graph == MAP_FAILED)
        die("mmap");
    madvise(graph, nodes * sizeof *graph, MADV_NOHUGEPAGE);
    for (uint32_t i = 0; i < nodes; i += 512)
        graph[i] = i * 2246822519u;
    return serve(argc, argv, &(struct server){.handle = suggest_friends, .every_ms = 300, .pause_us = 800, .slow_ms = 8});
}
