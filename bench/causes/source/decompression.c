// For cc, not for the go command, which takes a .c file in a package for cgo.

/* Decompression: one stored block expands to megabytes. */
#include "server.h"

static unsigned char packed[1 << 16], *plain;
static const size_t most = 48u << 20;

FN static size_t copy_match(unsigned char *to, size_t at, size_t distance, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[at + i] = to[at + i - distance];
    return at + n;
}

FN static size_t expand_block(const unsigned char *from, unsigned char *to, size_t want)
{
    size_t at = 64, k = 0;
    memcpy(to, from, 64);
    while (at + 1024 < want) {
        unsigned char c = from[k++ % sizeof packed];
        at = copy_match(to, at, 1u + c % 60, 128 + (size_t)c * 3);
    }
    return at;
}

FN static void read_object(struct request *r)
{
    size_t want = r->odd ? most : 20000 + (size_t)(exponential(&r->seed) * 30000);
    r->seed ^= expand_block(packed, plain + r->thread * most, want) | 1;
}

FN static void cat_file(struct request *r)
{
    parse_request(r);
    read_object(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    uint64_t seed = 3;
    for (size_t i = 0; i < sizeof packed; i++)
        packed[i] = (unsigned char)draw(&seed);
    plain = memset(malloc(2 * most), 1, 2 * most);
    return serve(argc, argv, &(struct server){.handle = cat_file, .every_ms = 300, .slow_ms = 6});
}
