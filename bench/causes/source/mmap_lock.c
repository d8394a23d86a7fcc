// For cc, not for the go command, which takes a .c file in a package for cgo.

/* The lock of the address space: while another thread unmaps a gigabyte, nobody can map or unmap. */
#include "server.h"
#include <sys/mman.h>

static const size_t cache_size = 768ul << 20;

FN static char *fill_cache(void)
{
    char *p = mmap(NULL, cache_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        die("mmap");
    madvise(p, cache_size, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < cache_size && serving; i += 4096)
        p[i] = 1;
    return p;
}

FN static void drop_cache(char *p)
{
    if (munmap(p, cache_size) != 0)
        die("munmap");
}

static void cache_thread(void)
{
    while (serving) {
        char *p = fill_cache();
        pause_ms(100);
        drop_cache(p);
        pause_ms(100);
    }
}

FN static void *map_buffer(size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        die("mmap");
    return p;
}

FN static void use_buffers(void)
{
    for (unsigned i = 0; i < 4; i++) {
        char *p = map_buffer(65536);
        p[0] = 1;
        munmap(p, 65536);
    }
}

FN static void encode_frame(struct request *r)
{
    parse_request(r);
    use_buffers();
    render_reply(r);
}

int main(int argc, char **argv)
{
    background("cache", cache_thread);
    return serve(argc, argv, &(struct server){.handle = encode_frame, .threads = 1, .slow_ms = 6});
}
