// For cc, not for the go command, which takes a .c file in a package for cgo:
//go:build ignore

/*
 * load PORT SECONDS: asks the demo's server for pages on three connections for
 * SECONDS, or until SIGTERM, at a few thousand requests a second, and prints how
 * long they took.
 * Once a second one of them is "report-2019", which is never in the cache:
 * "report-1991" takes its slot in between.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS = 3, KEYS = 40, MOST = 1 << 18 };

struct client {
    pthread_t thread;
    int id, port, failed;
    double seconds;
    unsigned n;
    float ms[MOST / CLIENTS];
};

static struct client clients[CLIENTS];
static volatile sig_atomic_t enough;

static void end(int signal)
{
    (void)signal;
    enough = 1;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int dial(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) != 0)
        return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

/* Returns 0 when the whole reply has come and its status is 200. */
static int ask(int fd, const char *key)
{
    char text[20000];
    size_t n = 0, want = 0;
    int length = snprintf(text, sizeof text, "GET /page/%s HTTP/1.1\r\nHost: demo\r\n\r\n", key);
    if (send(fd, text, (size_t)length, MSG_NOSIGNAL) != length)
        return -1;
    while (want == 0 || n < want) {
        ssize_t got = recv(fd, text + n, sizeof text - 1 - n, 0);
        if (got <= 0)
            return -1;
        n += (size_t)got;
        text[n] = 0;
        char *body = strstr(text, "\r\n\r\n"), *size = strcasestr(text, "content-length:");
        if (want == 0 && body != NULL && size != NULL)
            want = (size_t)(body + 4 - text) + (size_t)strtoul(size + 15, NULL, 10);
        if (want >= sizeof text)
            return -1;
    }
    return strncmp(text, "HTTP/1.1 200 ", 13) == 0 ? 0 : -1;
}

static void *client_main(void *arg)
{
    struct client *c = arg;
    double start = now(), slow = start + 0.5;
    int fd = dial(c->port);
    unsigned most = sizeof c->ms / sizeof c->ms[0];
    c->failed = fd < 0;
    for (unsigned i = 0; fd >= 0 && !enough && now() - start < c->seconds && c->n < most; i++) {
        char key[32];
        snprintf(key, sizeof key, "page-%u", (i * 7 + (unsigned)c->id) % KEYS);
        if (c->id == 0 && now() > slow) {
            slow += 1;
            snprintf(key, sizeof key, "report-2019");
        } else if (c->id == 0 && i % 100 == 0) {
            snprintf(key, sizeof key, "report-1991"); /* takes the slot */
        }
        double before = now();
        if (ask(fd, key) != 0) {
            c->failed = 1;
            break;
        }
        c->ms[c->n++] = (float)((now() - before) * 1e3);
        usleep(300);
    }
    if (fd >= 0)
        close(fd);
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    static float all[MOST];
    unsigned n = 0;
    if (argc < 3) {
        fprintf(stderr, "usage: load PORT SECONDS\n");
        return 2;
    }
    signal(SIGTERM, end);
    for (int i = 0; i < CLIENTS; i++) {
        struct client *c = &clients[i];
        c->id = i;
        c->port = atoi(argv[1]);
        c->seconds = atof(argv[2]);
        if ((errno = pthread_create(&c->thread, NULL, client_main, c)) != 0) {
            perror("load: thread");
            return 1;
        }
    }
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL);
        memcpy(all + n, clients[i].ms, clients[i].n * sizeof all[0]);
        n += clients[i].n;
        if (clients[i].failed) {
            fprintf(stderr, "load: client %d: the server went away\n", i);
            return 1;
        }
    }
    qsort(all, n, sizeof all[0], by_value);
    if (n > 0)
        printf("%u requests: half within %.2f ms, 99 %% within %.2f ms, the slowest %.0f ms\n", n, all[n / 2],
               all[n - 1 - n / 100], all[n - 1]);
    return 0;
}
