// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A mapped file made sure of: msync has as many pages to write as were touched since. */
#include "server.h"
#include <sys/mman.h>

enum { SIZE = 32 << 20 };
static char *table;

FN static void flush_table(void)
{
    for (size_t i = 0; i < SIZE; i += 4096)
        table[i]++;
    if (msync(table, SIZE, MS_SYNC) != 0)
        die("msync");
}

FN static void update_row(struct request *r)
{
    parse_request(r);
    table[draw(&r->seed) % 4096]++;
    if (r->odd)
        flush_table();
    render_reply(r);
}

int main(int argc, char **argv)
{
    int fd = open("table", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || ftruncate(fd, SIZE) != 0)
        die("table");
    table = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (table == MAP_FAILED)
        die("mmap");
    memset(table, 1, SIZE);
    return serve(argc, argv, &(struct server){.handle = update_row, .every_ms = 400, .slow_ms = 5});
}
