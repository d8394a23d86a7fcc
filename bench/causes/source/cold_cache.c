// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A page-cache miss: the segment that a rare request reads is no longer in memory. */
#include "server.h"

enum { PAGES = 16384, READS = 250 };
static int hot, cold;

static int make_file(const char *name, unsigned pages)
{
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    char *page = calloc(64, 4096);
    for (unsigned i = 0; i < pages / 64; i++)
        if (write(fd, page, 64 * 4096) < 0)
            die(name);
    free(page);
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    return fd;
}

FN static uint32_t read_block(int fd, unsigned i)
{
    char block[512];
    ssize_t n = pread(fd, block, sizeof block, (off_t)i * 4096);
    return n > 0 ? mix(block, (unsigned)n, 1) : 0;
}

FN static void load_segment(struct request *r)
{
    int fd = r->odd ? cold : hot;
    for (unsigned i = 0; i < READS; i++)
        r->seed ^= read_block(fd, (unsigned)(draw(&r->seed) % PAGES)) | 1;
}

static void evict(void)
{
    for (; serving; pause_ms(100))
        posix_fadvise(cold, 0, 0, POSIX_FADV_DONTNEED);
}

FN static void get_blob(struct request *r)
{
    parse_request(r);
    load_segment(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    hot = make_file("hot", PAGES);
    cold = make_file("cold", PAGES);
    posix_fadvise(cold, 0, 0, POSIX_FADV_DONTNEED);
    background("evictor", evict);
    return serve(argc, argv, &(struct server){.handle = get_blob, .every_ms = 300, .slow_ms = 8});
}
