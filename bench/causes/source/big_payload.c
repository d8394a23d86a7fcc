// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A large payload: it is copied from buffer to buffer as small ones are. */
#include "server.h"

static char *from, *to;
static const size_t most = 48u << 20;

FN static void copy_payload(size_t n) { memcpy(to, from, n); }

FN static void pass_message(struct request *r)
{
    size_t n = r->odd ? most : 20000 + (size_t)(exponential(&r->seed) * 20000);
    copy_payload(n);
    copy_payload(n);
}

FN static void relay_message(struct request *r)
{
    parse_request(r);
    pass_message(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    from = memset(malloc(most), 1, most);
    to = memset(malloc(most), 1, most);
    return serve(argc, argv, &(struct server){.handle = relay_message, .every_ms = 300, .slow_ms = 5});
}
