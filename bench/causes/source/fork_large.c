// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A fork of a large process: its page tables are copied while the request waits. */
#include "server.h"
#include <sys/mman.h>

static char *heap;
static const size_t heap_size = 768ul << 20;

FN static void spawn_helper(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    mix(&pid, sizeof pid, 1);
}

FN static void convert_image(struct request *r)
{
    if (r->odd)
        spawn_helper();
    mix(r->text, 200, 50);
}

FN static void upload_image(struct request *r)
{
    parse_request(r);
    convert_image(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    signal(SIGCHLD, SIG_IGN); /* nobody waits for helpers */
    heap = mmap(NULL, heap_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (heap == MAP_FAILED)
        die("mmap");
    madvise(heap, heap_size, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < heap_size; i += 4096)
        heap[i] = 1;
    return serve(argc, argv, &(struct server){.handle = upload_image, .every_ms = 400, .slow_ms = 6});
}
