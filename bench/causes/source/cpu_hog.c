// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A processor hog at a higher priority: other processes take the processor that the requests run on. */
#include "server.h"
#include <sys/resource.h>

static void hog(void)
{
    static unsigned char data[512];
    stay_on(0);
    for (;;) {
        sleep_us(250000);
        for (uint64_t end = now_ns() + 60000000; now_ns() < end;)
            data[0] ^= (unsigned char)mix(data, sizeof data, 100);
    }
}

FN static void score_document(struct request *r, unsigned i) { put_field(r, i, mix(r->text, 200, 400)); }

FN static void rank_documents(struct request *r)
{
    for (unsigned i = 0; i < 20; i++)
        score_document(r, i);
}

FN static void search_documents(struct request *r)
{
    parse_request(r);
    rank_documents(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    for (int i = 0; i < 3; i++)
        child(hog);
    stay_on(0);
    setpriority(PRIO_PROCESS, 0, 19); /* the hogs have what this process was given */
    return serve(argc, argv, &(struct server){.handle = search_documents, .threads = 1, .pause_us = 2000, .slow_ms = 30});
}
