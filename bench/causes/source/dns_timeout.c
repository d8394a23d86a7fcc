// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A name server that doesn't answer: the query times out, is sent again, and the second server answers. */
#include "server.h"
#include <poll.h>
#include <sys/socket.h>

static int servers[2][2][2]; /* by thread, by server: ours, the server's */

static void name_server_of(unsigned thread, unsigned server)
{
    char query[64];
    int fd = servers[thread][server][1];
    for (ssize_t n; (n = recv(fd, query, sizeof query, 0)) > 0;)
        if ((server == 1 || query[0] == 0) && send(fd, query, (size_t)n, MSG_NOSIGNAL) < 0)
            break; /* the first server loses odd queries */
}
static void server00(void) { name_server_of(0, 0); }
static void server01(void) { name_server_of(0, 1); }
static void server10(void) { name_server_of(1, 0); }
static void server11(void) { name_server_of(1, 1); }

FN static int await_answer(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, timeout_ms);
}

FN static int send_query(int fd, const char *name, int timeout_ms)
{
    char answer[64];
    if (send(fd, name, 64, MSG_NOSIGNAL) < 0)
        die("send");
    return await_answer(fd, timeout_ms) > 0 && recv(fd, answer, sizeof answer, 0) > 0;
}

FN static void resolve_name(struct request *r)
{
    char name[64] = {(char)r->odd};
    snprintf(name + 1, sizeof name - 1, "host%u.example.org", r->id % 50);
    for (unsigned attempt = 0; attempt < 6; attempt++)
        if (send_query(servers[r->thread][attempt >= 3][0], name, 15))
            return;
}

FN static void connect_upstream(struct request *r)
{
    parse_request(r);
    resolve_name(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    for (int i = 0; i < 4; i++)
        if (socketpair(AF_UNIX, SOCK_DGRAM, 0, servers[i / 2][i % 2]) != 0)
            die("socketpair");
    background("ns-0", server00);
    background("ns-1", server01);
    background("ns-0", server10);
    background("ns-1", server11);
    return serve(argc, argv, &(struct server){.handle = connect_upstream, .every_ms = 300, .slow_ms = 20});
}
