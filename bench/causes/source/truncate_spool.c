// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A large file cut to nothing: the spool has grown for seconds when a request begins it anew. */
#include "server.h"
#include <sys/mman.h>

static int spool;
static char block[1 << 20];

static void spooler(void)
{
    for (; serving; pause_ms(400)) {
        for (unsigned i = 0; i < 96; i++)
            if (pwrite(spool, block, sizeof block, (off_t)i << 20) < 0)
                die("spool");
    }
}

FN static void reset_spool(void)
{
    if (ftruncate(spool, 0) != 0)
        die("ftruncate");
}

FN static void put_job(struct request *r)
{
    parse_request(r);
    if (r->odd)
        reset_spool();
    render_reply(r);
}

int main(int argc, char **argv)
{
    spool = memfd_create("spool", 0);
    background("spooler", spooler);
    return serve(argc, argv, &(struct server){.handle = put_job, .every_ms = 450, .slow_ms = 4});
}
