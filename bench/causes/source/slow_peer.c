// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A slow peer on a socket: the backend, another process, takes long for some keys. */
#include "server.h"
#include <sys/socket.h>

static int fds[2][2]; /* by thread: ours, the backend's */
static int which;

static void backend(void)
{
    char ask[8];
    uint64_t seed = 99;
    while (recv(fds[which][1], ask, sizeof ask, 0) > 0) {
        mix(ask, sizeof ask, 30 + (unsigned)(exponential(&seed) * 20));
        if (ask[0])
            sleep_us(40000);
        if (send(fds[which][1], ask, sizeof ask, MSG_NOSIGNAL) < 0)
            break;
    }
}

FN static void query_backend(struct request *r)
{
    char ask[8] = {(char)r->odd}, answer[8];
    if (send(fds[r->thread][0], ask, sizeof ask, MSG_NOSIGNAL) != sizeof ask || recv(fds[r->thread][0], answer, sizeof answer, 0) <= 0)
        die("backend");
}

FN static void fetch_profile(struct request *r)
{
    parse_request(r);
    query_backend(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    for (which = 0; which < 2; which++) {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds[which]) != 0)
            die("socketpair");
        child(backend);
    }
    return serve(argc, argv, &(struct server){.handle = fetch_profile, .every_ms = 300, .slow_ms = 10});
}
