// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A slow thread behind a socket: it scans its whole store for some keys. */
#include "server.h"
#include <sys/socket.h>

static int fds[2][2];

FN static uint32_t scan_store(const char *key, unsigned blocks)
{
    uint32_t h = 0;
    for (unsigned i = 0; i < blocks; i++)
        h ^= mix(key, 8, 120);
    return h;
}

FN static uint32_t get_from_store(const char *key) { return key[0] ? scan_store(key, 500) : mix(key, 8, 20); }

static void store_loop(unsigned i)
{
    char key[8];
    while (recv(fds[i][1], key, sizeof key, 0) > 0) {
        uint32_t v = get_from_store(key);
        memcpy(key + 4, &v, sizeof v);
        if (send(fds[i][1], key, sizeof key, MSG_NOSIGNAL) < 0)
            break;
    }
}
static void store0(void) { store_loop(0); }
static void store1(void) { store_loop(1); }

FN static void ask_store(struct request *r)
{
    char key[8] = {(char)r->odd}, answer[8];
    if (send(fds[r->thread][0], key, sizeof key, MSG_NOSIGNAL) != sizeof key || recv(fds[r->thread][0], answer, sizeof answer, 0) <= 0)
        die("store");
}

FN static void get_record(struct request *r)
{
    parse_request(r);
    ask_store(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    for (int i = 0; i < 2; i++)
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds[i]) != 0)
            die("socketpair");
    background("store-0", store0);
    background("store-1", store1);
    return serve(argc, argv, &(struct server){.handle = get_record, .every_ms = 300, .slow_ms = 10});
}
