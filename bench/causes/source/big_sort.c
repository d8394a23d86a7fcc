// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A large sort: one result has some thousand times as many rows. */
#include "server.h"

struct row {
    char name[92];
};

FN static int compare_rows(const void *a, const void *b)
{
    const char *x = ((const struct row *)a)->name, *y = ((const struct row *)b)->name;
    unsigned i = 0;
    while (i + 1 < sizeof ((struct row *)a)->name && x[i] == y[i])
        i++;
    return x[i] - y[i];
}

FN static void sort_rows(struct row *rows, unsigned n) { qsort(rows, n, sizeof *rows, compare_rows); }

FN static void fetch_rows(struct request *r, struct row *rows, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        memset(rows[i].name, '-', sizeof rows[i].name); /* the names of one kind differ at their end */
        uint64_t v = draw(&r->seed);
        memcpy(rows[i].name + 80, &v, sizeof v);
    }
}

FN static void select_ordered(struct request *r)
{
    unsigned n = r->odd ? 12000 : 60 + (unsigned)(exponential(&r->seed) * 60);
    struct row *rows = malloc(n * sizeof *rows);
    parse_request(r);
    fetch_rows(r, rows, n);
    sort_rows(rows, n);
    render_reply(r);
    free(rows);
}

int main(int argc, char **argv) { return serve(argc, argv, &(struct server){.handle = select_ordered, .every_ms = 300, .slow_ms = 5}); }
