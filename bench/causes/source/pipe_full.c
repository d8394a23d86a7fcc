// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A pipe that is full: the thread that reads the metrics is busy, and whoever writes some more waits. */
#include "server.h"

static int metrics[2];

FN static uint32_t merge_histogram(const char *p, unsigned i) { return mix(p, 512, 600 + i); }

FN static void digest_metrics(const char *p)
{
    for (unsigned i = 0; i < 100; i++)
        merge_histogram(p, i);
}

static void aggregator(void)
{
    static char block[4096];
    uint64_t next = now_ns() + 250000000;
    while (read(metrics[0], block, sizeof block) > 0)
        if (now_ns() > next) {
            digest_metrics(block);
            next = now_ns() + 250000000;
        }
}

FN static void send_metrics(struct request *r)
{
    char block[1024];
    memset(block, (int)r->id, sizeof block);
    for (int i = 0; i < 2; i++)
        if (write(metrics[1], block, sizeof block) < 0)
            die("metrics");
}

FN static void play_track(struct request *r)
{
    parse_request(r);
    send_metrics(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    if (pipe(metrics) != 0)
        die("pipe");
    fcntl(metrics[1], F_SETPIPE_SZ, 8192);
    background("aggregator", aggregator);
    return serve(argc, argv, &(struct server){.handle = play_track, .slow_ms = 10});
}
