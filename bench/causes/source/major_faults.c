// For cc, not for the go command, which takes a .c file in a package for cgo.

/* Major page faults: a mapped index has left memory, and is read by touching it. */
#include "server.h"
#include <sys/mman.h>

enum { PAGES = 16384, TOUCHES = 250 };
static const unsigned char *index_pages;
static int fd;

FN static void open_index(void)
{
    char *page = calloc(64, 4096);
    fd = open("index", O_RDWR | O_CREAT | O_TRUNC, 0600);
    for (unsigned i = 0; i < PAGES / 64; i++)
        if (write(fd, page, 64 * 4096) < 0)
            die("index");
    free(page);
    fsync(fd);
    index_pages = mmap(NULL, PAGES * 4096ul, PROT_READ, MAP_SHARED, fd, 0);
    if (index_pages == MAP_FAILED)
        die("mmap");
    madvise((void *)index_pages, PAGES * 4096ul, MADV_RANDOM);
}

FN static uint32_t probe_index(unsigned page) { return index_pages[page * 4096ul] + 1u; }

FN static void search_index(struct request *r)
{
    /* The front half is hot, the back half is dropped. */
    unsigned from = r->odd ? PAGES / 2 : 0;
    for (unsigned i = 0; i < TOUCHES; i++)
        r->seed ^= probe_index(from + (unsigned)(draw(&r->seed) % (PAGES / 2))) | 1;
}

static void drop(void)
{
    for (; serving; pause_ms(100)) {
        madvise((char *)index_pages + PAGES / 2 * 4096ul, PAGES / 2 * 4096ul, MADV_DONTNEED);
        posix_fadvise(fd, PAGES / 2 * 4096l, PAGES / 2 * 4096l, POSIX_FADV_DONTNEED);
    }
}

FN static void find_item(struct request *r)
{
    parse_request(r);
    search_index(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    open_index();
    for (unsigned i = 0; i < PAGES / 2; i++)
        (void)probe_index(i);
    background("dropper", drop);
    return serve(argc, argv, &(struct server){.handle = find_item, .every_ms = 300, .slow_ms = 8});
}
