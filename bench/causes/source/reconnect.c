// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A new connection: the pooled one has been closed, and setting up another takes some round trips. */
#include "server.h"
#include <sys/socket.h>

static int lost[2], fd[2];

FN static void await_greeting(int step)
{
    (void)step;
    sleep_us(10000); /* a peer that is far away */
}

FN static int open_connection(void)
{
    int s = socket(AF_UNIX, SOCK_DGRAM, 0);
    for (int step = 0; step < 3; step++)
        await_greeting(step);
    return s;
}

FN static int get_connection(struct request *r)
{
    if (r->odd)
        lost[r->thread] = 1;
    if (lost[r->thread]) {
        close(fd[r->thread]);
        fd[r->thread] = open_connection();
        lost[r->thread] = 0;
    }
    return fd[r->thread];
}

FN static void query_database(struct request *r)
{
    parse_request(r);
    mix(r->text, 100, (unsigned)get_connection(r) % 3 + 20);
    render_reply(r);
}

int main(int argc, char **argv)
{
    for (int i = 0; i < 2; i++)
        fd[i] = socket(AF_UNIX, SOCK_DGRAM, 0);
    return serve(argc, argv, &(struct server){.handle = query_database, .every_ms = 300, .slow_ms = 15});
}
