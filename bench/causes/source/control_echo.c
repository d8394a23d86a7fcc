// For cc, not for the go command, which takes a .c file in a package for cgo.

/* No cause at all: each request asks a thread behind a socket, whose work scatters. */
#include "server.h"
#include <sys/socket.h>

static int fds[2];

FN static void answer_ask(char *ask, uint64_t *seed) { ask[0] = (char)mix(ask, 16, 6 + (unsigned)(exponential(seed) * 12)); }

static void answerer(void)
{
    char ask[16];
    uint64_t seed = the_server.seed + 7;
    while (recv(fds[1], ask, sizeof ask, 0) > 0) {
        answer_ask(ask, &seed);
        if (send(fds[1], ask, sizeof ask, MSG_NOSIGNAL) < 0)
            break;
    }
}

FN static void ask_answerer(struct request *r)
{
    char ask[16] = {(char)r->id};
    if (send(fds[0], ask, sizeof ask, MSG_NOSIGNAL) < 0 || recv(fds[0], ask, sizeof ask, 0) <= 0)
        die("answerer");
}

FN static void forward_request(struct request *r)
{
    parse_request(r);
    ask_answerer(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0)
        die("socketpair");
    background("answerer", answerer);
    return serve(argc, argv, &(struct server){.handle = forward_request, .threads = 1, .pause_us = 800});
}
