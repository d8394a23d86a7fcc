// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A client that reads slowly: the reply doesn't fit into the socket's buffer, and the request waits for room. */
#include "server.h"
#include <sys/socket.h>

static int clients[2][2];

static void read_replies(void)
{
    static char part[64 << 10];
    for (unsigned k = 0;; k++) {
        ssize_t n[2];
        for (int i = 0; i < 2; i++) {
            n[i] = recv(clients[i][1], part, sizeof part, MSG_DONTWAIT);
            if (n[i] > 32 << 10)
                sleep_us(2000);
        }
        if (n[0] <= 0 && n[1] <= 0)
            sleep_us(100);
    }
}

FN static void send_part(int to, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t k = send(to, p, n, 0);
        if (k <= 0)
            return;
        p += k;
        n -= (size_t)k;
    }
}

FN static void send_reply(struct request *r)
{
    static char page[1 << 20];
    send_part(clients[r->thread % 2][0], page, r->odd ? sizeof page : 400);
}

FN static void serve_asset(struct request *r)
{
    parse_request(r);
    send_reply(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    for (int i = 0; i < 2; i++)
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, clients[i]) != 0)
            die("socketpair");
    child(read_replies);
    return serve(argc, argv, &(struct server){.handle = serve_asset, .every_ms = 350, .slow_ms = 6});
}
