// For cc, not for the go command, which takes a .c file in a package for cgo.

/* Allocator contention: an import allocates in the one arena that all threads share. */
#include "server.h"
#include <malloc.h>

enum { ROWS = 600 };
static volatile int importing;

FN static void *new_row(uint64_t *seed)
{
    char *row = malloc(1100 + draw(seed) % 2000); /* too large for a thread's own cache */
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

FN static void import_batch(void)
{
    uint64_t seed = now_ns() | 1;
    void *rows[256];
    for (unsigned i = 0; i < 256; i++)
        rows[i] = malloc(1100 + draw(&seed) % 6000);
    for (unsigned i = 0; i < 256; i++)
        free(rows[(i * 37) % 256]);
}

static void importer(void)
{
    stay_on(0);
    for (; serving; sleep_us(1000))
        while (importing && serving)
            import_batch();
}

static void import_now_and_then(void)
{
    while (serving) {
        pause_ms(280);
        importing = 1;
        pause_ms(40);
        importing = 0;
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
    background("importer", importer);
    background("scheduler", import_now_and_then);
    stay_on(1);
    return serve(argc, argv, &(struct server){.handle = list_rows, .threads = 1, .slow_ms = 6});
}
