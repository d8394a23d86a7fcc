// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A large sort: one result has some thousand times as many rows. */
#include "server.h"

struct row {
    unsigned key;
    char rest[28];
};

FN static int compare_rows(const void *a, const void *b)
{
    unsigned x = ((const struct row *)a)->key, y = ((const struct row *)b)->key;
    return x < y ? -1 : x > y;
}

FN static void sort_rows(struct row *rows, unsigned n) { qsort(rows, n, sizeof *rows, compare_rows); }

FN static void fetch_rows(struct request *r, struct row *rows, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        rows[i].key = (unsigned)draw(&r->seed);
}

FN static void select_ordered(struct request *r)
{
    unsigned n = r->odd ? 24000 : 60 + (unsigned)(exponential(&r->seed) * 60);
    struct row *rows = malloc(n * sizeof *rows);
    parse_request(r);
    fetch_rows(r, rows, n);
    sort_rows(rows, n);
    render_reply(r);
    free(rows);
}

int main(int argc, char **argv) { return serve(argc, argv, &(struct server){.handle = select_ordered, .every_ms = 300, .slow_ms = 3}); }
