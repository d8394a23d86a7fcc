// For cc, not for the go command, which takes a .c file in a package for cgo.

/* An fsync stall: the rare request that commits waits for all that was written before it. */
#include "server.h"
#include <sys/stat.h>

static int journal;
static char page[1 << 16];

FN static void append_record(struct request *r)
{
    off_t at = (off_t)(r->id % 512) * (off_t)sizeof page;
    if (pwrite(journal, page, sizeof page, at) < 0)
        die("journal");
}

FN static void commit_journal(void)
{
    if (fsync(journal) != 0)
        die("fsync");
}

FN static void store_item(struct request *r)
{
    parse_request(r);
    append_record(r);
    if (r->odd)
        commit_journal();
    render_reply(r);
}

int main(int argc, char **argv)
{
    journal = open("journal", O_RDWR | O_CREAT | O_TRUNC, 0600);
    return serve(argc, argv, &(struct server){.handle = store_item, .every_ms = 300, .slow_ms = 6});
}
