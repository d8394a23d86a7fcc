// For cc, not for the go command, which takes a .c file in a package for cgo.

/* Delayed acknowledgement: a request in two writes waits for the peer's timer, once the peer has stopped acknowledging at once. */
#include "server.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

static int ours[2], theirs[2];

static void echo_loop(int fd)
{
    char message[64];
    ssize_t n;
    int have = 0;
    while ((n = recv(fd, message, sizeof message - (size_t)have, 0)) > 0)
        if ((have += (int)n) >= 64) {
            have = 0;
            if (send(fd, message, 64, MSG_NOSIGNAL) < 0)
                break;
        }
}
static void echo0(void) { echo_loop(theirs[0]); }
static void echo1(void) { echo_loop(theirs[1]); }

static void make_connections(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    int l = socket(AF_INET, SOCK_STREAM, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(l, (struct sockaddr *)&at, sizeof at) != 0 || listen(l, 4) != 0 || getsockname(l, (struct sockaddr *)&at, &size) != 0)
        die("listen");
    for (int i = 0; i < 2; i++) {
        ours[i] = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(ours[i], (struct sockaddr *)&at, sizeof at) != 0 || (theirs[i] = accept(l, NULL, NULL)) < 0)
            die("connect");
    }
}

FN static void send_part(int fd, const char *p, unsigned n)
{
    if (send(fd, p, n, MSG_NOSIGNAL) < 0)
        die("send");
}

FN static void await_reply(int fd)
{
    char reply[64];
    for (ssize_t have = 0, n; have < 64; have += n)
        if ((n = recv(fd, reply, sizeof reply, 0)) <= 0)
            die("recv");
}

FN static void exchange(struct request *r)
{
    char message[64] = {1};
    int fd = ours[r->thread], both = !r->odd;
    if (both) {
        send_part(fd, message, 64);
    } else {
        /* Head, some of the body, the rest: the last waits for an acknowledgement. */
        for (int i = 0; i < 4; i++)
            send_part(fd, message, 16);
    }
    await_reply(fd);
}

FN static void put_object(struct request *r)
{
    parse_request(r);
    exchange(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    make_connections();
    background("echo-0", echo0);
    background("echo-1", echo1);
    return serve(argc, argv, &(struct server){.handle = put_object, .every_ms = 300, .slow_ms = 10});
}
