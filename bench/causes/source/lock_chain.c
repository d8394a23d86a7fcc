// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A chain: the lock is held by a thread that itself waits, for an answer of a third one. */
#include "server.h"
#include <sys/socket.h>

static pthread_mutex_t token_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t token;
static int fds[2];

FN static uint32_t verify_signature(unsigned i) { return mix(&token, sizeof token, 700 + i); }

FN static uint32_t issue_token(void)
{
    uint32_t t = 0;
    for (unsigned i = 0; i < 100; i++)
        t ^= verify_signature(i);
    return t;
}

static void authority(void)
{
    uint32_t ask;
    while (recv(fds[1], &ask, sizeof ask, 0) > 0) {
        ask = issue_token();
        if (send(fds[1], &ask, sizeof ask, MSG_NOSIGNAL) < 0)
            break;
    }
}

FN static void renew_token(void)
{
    uint32_t answer = 0;
    pthread_mutex_lock(&token_lock);
    if (send(fds[0], &answer, sizeof answer, MSG_NOSIGNAL) < 0 || recv(fds[0], &answer, sizeof answer, 0) <= 0)
        die("authority");
    token = answer;
    pthread_mutex_unlock(&token_lock);
}

static void renewer(void)
{
    for (; serving; pause_ms(300))
        renew_token();
}

FN static uint32_t current_token(void)
{
    pthread_mutex_lock(&token_lock);
    uint32_t t = token;
    pthread_mutex_unlock(&token_lock);
    return t;
}

FN static void call_api(struct request *r)
{
    parse_request(r);
    r->seed ^= current_token() | 1;
    render_reply(r);
}

int main(int argc, char **argv)
{
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0)
        die("socketpair");
    background("authority", authority);
    background("renewer", renewer);
    return serve(argc, argv, &(struct server){.handle = call_api, .slow_ms = 10});
}
