// For cc, not for the go command, which takes a .c file in a package for cgo.

/* EAGAIN tried again at once: the queue to the collector is full, and who fills it asks until there is room. */
#include "server.h"

static int queue[2];

FN static void digest_events(void)
{
    static char block[512];
    for (unsigned i = 0; i < 20; i++)
        mix(block, sizeof block, 1000);
}

static void collector(void)
{
    char block[256];
    uint64_t next = now_ns() + 100000000u;
    while (serving) {
        if (read(queue[0], block, sizeof block) <= 0)
            return;
        if (now_ns() > next) {
            digest_events();
            next = now_ns() + 300000000u;
        }
    }
}

FN static int offer_event(const char *event)
{
    if (write(queue[1], event, 256) == 256)
        return 1;
    mix(event, 64, 4);
    return 0;
}

FN static void publish(struct request *r)
{
    for (unsigned i = 0, n = 8 + (unsigned)(uniform(&r->seed) * 8); i < n; i++)
        while (!offer_event(r->text))
            if (!serving)
                return;
}

FN static void track_click(struct request *r)
{
    parse_request(r);
    publish(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    if (pipe(queue) != 0 || fcntl(queue[1], F_SETPIPE_SZ, 4096) < 0 || fcntl(queue[1], F_SETFL, O_NONBLOCK) != 0)
        die("pipe");
    background("collector", collector);
    return serve(argc, argv, &(struct server){.handle = track_click, .slow_ms = 4});
}
