// For cc, not for the go command, which takes a .c file in a package for cgo.

/* malloc_trim: a rare request gives all free memory back, and pages of it are dropped one by one. */
#include "server.h"
#include <malloc.h>

FN static void fill_cache(void)
{
    enum { N = 12000 };
    void **block = calloc(2 * N, sizeof *block), **pin = block + N;
    for (unsigned i = 0; i < N; i++) {
        block[i] = memset(malloc(9000), 1, 9000);
        pin[i] = malloc(64);
    }
    for (unsigned i = 0; i < N; i++)
        free(block[i]);
    for (unsigned i = 0; i < N; i++)
        free(pin[i]);
    free(block);
}

FN static void release_memory(void)
{
    fill_cache();
    malloc_trim(0);
}

FN static void drop_caches(struct request *r)
{
    if (r->odd)
        release_memory();
}

FN static void manage_cache(struct request *r)
{
    parse_request(r);
    drop_caches(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    fill_cache();
    return serve(argc, argv, &(struct server){.handle = manage_cache, .every_ms = 400, .slow_ms = 8});
}
