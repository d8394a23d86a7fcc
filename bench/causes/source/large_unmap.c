// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A large region given back: the buffer of a rare session has as many pages as a thousand others. */
#include "server.h"
#include <sys/mman.h>

struct session {
    void *at;
    size_t size;
};
static struct session *_Atomic large;

static struct session *open_buffer(size_t size)
{
    struct session *s = malloc(sizeof *s);
    *s = (struct session){mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), size};
    if (s->at == MAP_FAILED)
        die("mmap");
    madvise(s->at, size, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < size; i += 4096)
        ((char *)s->at)[i] = 1;
    return s;
}

static void uploads(void)
{
    for (; serving; pause_ms(20))
        if (large == NULL)
            large = open_buffer(96 << 20);
}

FN static void drop_buffer(struct session *s)
{
    munmap(s->at, s->size);
    free(s);
}

FN static void end_session(struct request *r)
{
    struct session *s = NULL;
    parse_request(r);
    if (r->odd)
        s = __atomic_exchange_n((struct session **)&large, NULL, __ATOMIC_ACQ_REL);
    if (s == NULL)
        s = open_buffer(64 << 10);
    drop_buffer(s);
    render_reply(r);
}

int main(int argc, char **argv)
{
    background("uploads", uploads);
    return serve(argc, argv, &(struct server){.handle = end_session, .every_ms = 400, .slow_ms = 4});
}
