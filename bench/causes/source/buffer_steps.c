// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A buffer that grows by the same step each time: a long reply is copied as often as it has steps. */
#include "server.h"

struct buffer {
    char *at;
    size_t used, size;
};

FN static void grow_buffer(struct buffer *b)
{
    char *at = malloc(b->size + 4096);
    memcpy(at, b->at, b->used);
    free(b->at);
    b->at = at;
    b->size += 4096;
}

FN static void append_row(struct buffer *b, unsigned i)
{
    if (b->used + 512 > b->size)
        grow_buffer(b);
    memset(b->at + b->used, (int)('a' + i % 26), 512);
    b->used += 512;
}

FN static void write_table(struct request *r)
{
    struct buffer b = {malloc(4096), 0, 4096};
    for (unsigned i = 0, n = r->odd ? 2500 : 24 + (unsigned)(uniform(&r->seed) * 16); i < n; i++)
        append_row(&b, i);
    r->seed ^= b.used * 2;
    free(b.at);
}

FN static void export_table(struct request *r)
{
    parse_request(r);
    write_table(r);
    render_reply(r);
}

int main(int argc, char **argv) { return serve(argc, argv, &(struct server){.handle = export_table, .every_ms = 300, .slow_ms = 8}); }
