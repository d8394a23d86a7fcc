// A program whose only thread waits in a call that handlers of signals end with EINTR, even with SA_RESTART (signal(7)), and most of which
// a stop would end as well. Its arguments say in which call, and how often. Before each it prints "ready", behind it how often the handler has run,
// what the call returned, and whether that was for EINTR; in the end "ok".
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

static volatile int handled;

static void handle(int sig) { handled += sig == SIGUSR1; }

int main(int argc, char **argv) {
    struct sigaction act = {.sa_handler = handle, .sa_flags = SA_RESTART};
    sigset_t none, usr1, usr2;
    sigemptyset(&none);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigemptyset(&usr2);
    sigaddset(&usr2, SIGUSR2);
    if (argc != 3 || sigaction(SIGUSR1, &act, 0) || sigprocmask(SIG_BLOCK, &usr2, 0)) return 2;
    const char *call = argv[1];
    int masked = !strcmp(call, "epoll_pwait"), pair[2];
    if (masked && sigprocmask(SIG_BLOCK, &usr1, 0)) return 3;
    struct timeval patience = {20, 0};
    struct timespec t = {20, 0};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience)) return 4;
    int fd = epoll_create1(0);
    struct epoll_event e = {.events = EPOLLIN};
    if (epoll_ctl(fd, EPOLL_CTL_ADD, pair[0], &e)) return 5;
    for (int turns = atoi(argv[2]); turns > 0; turns--) {
        puts("ready");
        fflush(stdout);
        struct pollfd p = {pair[0], POLLIN, 0};
        char c;
        int r = -2;
        if (!strcmp(call, "epoll_wait")) r = epoll_wait(fd, &e, 1, 20000);
        if (masked) r = epoll_pwait(fd, &e, 1, 20000, &none);
        if (!strcmp(call, "sigtimedwait")) r = sigtimedwait(&usr2, 0, &t);
        if (!strcmp(call, "recv")) r = recv(pair[0], &c, 1, 0);
        if (!strcmp(call, "poll")) r = poll(&p, 1, 20000);
        printf("%d %d %s\n", handled, r, errno == EINTR ? "EINTR" : strerror(errno));
        fflush(stdout);
    }
    puts("ok");
    return 0;
}
