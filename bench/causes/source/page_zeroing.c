// For cc, not for the go command, which takes a .c file in a package for cgo.

/* Fresh memory: a large picture gets new pages from the kernel, and each is zeroed when it is touched first. */
#include "server.h"

FN static unsigned char *new_canvas(size_t n)
{
    unsigned char *p = malloc(n);
    if (p == NULL)
        die("malloc");
    return p;
}

FN static void paint_background(unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i += 1024)
        p[i] = (unsigned char)i;
}

FN static void render_tile(struct request *r)
{
    size_t n = r->odd ? 48u << 20 : 30000 + (size_t)(exponential(&r->seed) * 20000);
    unsigned char *p = new_canvas(n);
    parse_request(r);
    paint_background(p, n);
    render_reply(r);
    free(p);
}

int main(int argc, char **argv) { return serve(argc, argv, &(struct server){.handle = render_tile, .every_ms = 300, .slow_ms = 4}); }
