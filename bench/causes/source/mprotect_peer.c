// For cc, not for the go command, which takes a .c file in a package for cgo.

/* The address space's lock: a collector protects its pages one by one, while a request wants memory of the kernel. */
#include "server.h"
#include <sys/mman.h>

enum { REGION = 512 << 20, PIECE = 64 << 20 };
static char *heap;

FN static void protect_piece(char *at, int how) { mprotect(at, PIECE, how); }

FN static void write_barrier(void)
{
    for (int i = 0; i < REGION / PIECE; i++)
        protect_piece(heap + (size_t)i * PIECE, PROT_READ);
    for (int i = 0; i < REGION / PIECE; i++)
        protect_piece(heap + (size_t)i * PIECE, PROT_READ | PROT_WRITE);
}

static void collector(void)
{
    while (serving) {
        pause_ms(300);
        write_barrier();
    }
}

FN static void *take_stack(void)
{
    char *p = mmap(NULL, 256 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        die("mmap");
    return p;
}

FN static void use_stack(void *p) { *(volatile char *)p = 1; }

FN static void drop_stack(void *p) { munmap(p, 256 << 10); }

FN static void run_fiber(struct request *r)
{
    parse_request(r);
    for (int i = 0; i < 4; i++) {
        void *p = take_stack();
        use_stack(p);
        drop_stack(p);
    }
    render_reply(r);
}

int main(int argc, char **argv)
{
    heap = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (heap == MAP_FAILED)
        die("mmap");
    madvise(heap, REGION, MADV_NOHUGEPAGE);
    memset(heap, 1, REGION);
    background("collector", collector);
    return serve(argc, argv, &(struct server){.handle = run_fiber, .slow_ms = 1});
}
