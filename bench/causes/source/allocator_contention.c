// For cc, not for the go command, which takes a .c file in a package for cgo.

/* Allocator contention: statistics of the heap are taken under the lock of the arena that all threads share. */
#include "server.h"
#include <malloc.h>

enum { ROWS = 200, FRAGMENTS = 300000 };

FN static void fragment_heap(void)
{
    char **piece = malloc(FRAGMENTS * sizeof *piece);
    for (unsigned i = 0; i < FRAGMENTS; i++)
        piece[i] = malloc(1100);
    for (unsigned i = 0; i < FRAGMENTS; i += 2)
        free(piece[i]);
    free(malloc(1 << 20)); /* sorts them */
}

FN static void *new_row(uint64_t *seed)
{
    char *row = malloc(1500 + draw(seed) % 2000); /* too large for a thread's own cache */
    row[0] = 1;
    return row;
}

FN static void build_rows(struct request *r)
{
    void *rows[ROWS];
    for (unsigned i = 0; i < ROWS; i++)
        rows[i] = new_row(&r->seed);
    for (unsigned i = 0; i < ROWS; i++)
        free(rows[i]);
}

FN static size_t report_memory(void) { return mallinfo2().fordblks; }

static void monitor(void)
{
    volatile size_t most = 0;
    while (serving) {
        pause_ms(300);
        for (uint64_t end = now_ns() + 40000000; now_ns() < end;) {
            size_t now = report_memory();
            most = now > most ? now : most;
        }
    }
}

FN static void list_rows(struct request *r)
{
    parse_request(r);
    build_rows(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    mallopt(M_ARENA_MAX, 1);
    fragment_heap();
    background("monitor", monitor);
    return serve(argc, argv, &(struct server){.handle = list_rows, .threads = 1, .slow_ms = 6});
}
