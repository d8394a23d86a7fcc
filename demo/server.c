// For cc, not for the go command, which takes a .c file in a package for cgo:
//go:build ignore

/*
 * A small web server that callreel's demo records: threads, a cache of rendered
 * pages, templates, run-length compression. One request in it is slow, for a
 * reason that its timings from outside do not tell: whenever "report-2019" has
 * fallen out of the cache, its table is built anew, and every entry of it lands
 * in one bucket.
 *
 * server PORT: serves http://127.0.0.1:PORT/page/KEY until SIGTERM. With PORT 0
 * it chooses one. It prints "listening on PORT".
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What stays a function at -O2, so that the demo has layers to show. */
#define LAYER __attribute__((noinline))

enum {
    WORKERS = 4,
    BUCKETS = 4096,
    PAGES = 64,
    PAGE_BYTES = 8192,
    REQUEST_BYTES = 4096,
    COLLIDING = 17000, /* entries of one bucket: a rebuild takes about 250 ms */
};

struct request {
    char key[64];
    int keep_alive;
};

struct page {
    char key[64];
    size_t length;
    char body[PAGE_BYTES];
};

struct entry {
    struct entry *next;
    uint32_t id;
};

static struct page cache[PAGES];
static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static int listening;

LAYER uint32_t hash_key(const char *key)
{
    uint32_t h = 2166136261u;
    for (; *key; key++)
        h = (h ^ (unsigned char)*key) * 16777619u;
    return h;
}

/* Walks to the end of the bucket that id belongs to. */
LAYER struct entry **hash_find(struct entry **table, uint32_t bucket, uint32_t id)
{
    struct entry **at = &table[bucket];
    while (*at != NULL && (*at)->id != id)
        at = &(*at)->next;
    return at;
}

/* Everything in one bucket: each insertion walks past all before it. */
LAYER uint64_t hash_collide(struct entry **table, uint32_t n)
{
    struct entry *entries = calloc(n, sizeof *entries);
    uint64_t sum = 0;
    if (entries == NULL)
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        entries[i].id = i;
        *hash_find(table, 0, i) = &entries[i];
        sum += i;
    }
    table[0] = NULL;
    free(entries);
    return sum;
}

LAYER uint64_t hash_spread(struct entry **table, uint32_t n)
{
    struct entry entries[64];
    uint64_t sum = 0;
    if (n > 64)
        n = 64;
    for (uint32_t i = 0; i < n; i++) {
        entries[i] = (struct entry){.next = NULL, .id = i};
        *hash_find(table, i % BUCKETS, i) = &entries[i];
        sum += i;
    }
    for (uint32_t i = 0; i < n; i++)
        table[i % BUCKETS] = NULL;
    return sum;
}

/* The planted slow call. */
LAYER uint64_t cache_rebuild(const char *key)
{
    struct entry **table = calloc(BUCKETS, sizeof *table);
    uint64_t sum;
    if (table == NULL)
        return 0;
    if (strcmp(key, "report-2019") == 0)
        sum = hash_collide(table, COLLIDING);
    else
        sum = hash_spread(table, 64);
    free(table);
    return sum;
}

LAYER size_t append(char *to, size_t at, size_t size, const char *text)
{
    while (*text && at + 1 < size)
        to[at++] = *text++;
    to[at] = 0;
    return at;
}

LAYER size_t escape_html(char *to, size_t at, size_t size, const char *text)
{
    for (; *text; text++) {
        char one[2] = {*text, 0};
        at = append(to, at, size, *text == '<' ? "&lt;" : *text == '&' ? "&amp;" : one);
    }
    return at;
}

LAYER size_t render_row(char *to, size_t at, size_t size, const char *key, unsigned n)
{
    char number[32];
    snprintf(number, sizeof number, "%u", n * hash_key(key) % 1000003u);
    at = append(to, at, size, "<tr><td>");
    at = escape_html(to, at, size, key);
    at = append(to, at, size, "</td><td>");
    at = append(to, at, size, number);
    return append(to, at, size, "</td></tr>\n");
}

LAYER void render_page(struct page *p, const char *key)
{
    size_t at = append(p->body, 0, PAGE_BYTES, "<table>\n");
    uint64_t sum = cache_rebuild(key);
    for (unsigned n = 1; n <= 20; n++)
        at = render_row(p->body, at, PAGE_BYTES, key, n + (unsigned)(sum & 7));
    p->length = append(p->body, at, PAGE_BYTES, "</table>\n");
    snprintf(p->key, sizeof p->key, "%s", key);
}

/* Copies the page out, since another worker may replace it. */
LAYER int lookup_cache(const char *key, struct page *out)
{
    struct page *p = &cache[hash_key(key) % PAGES];
    int hit;
    pthread_mutex_lock(&cache_lock);
    hit = strcmp(p->key, key) == 0;
    if (hit)
        *out = *p;
    pthread_mutex_unlock(&cache_lock);
    return hit;
}

LAYER void store_cache(const struct page *p)
{
    pthread_mutex_lock(&cache_lock);
    cache[hash_key(p->key) % PAGES] = *p;
    pthread_mutex_unlock(&cache_lock);
}

/* Runs of a byte become the byte and their length. */
LAYER size_t compress_page(const char *in, size_t n, char *out)
{
    size_t at = 0;
    for (size_t i = 0, run; i < n; i += run) {
        for (run = 1; i + run < n && in[i + run] == in[i] && run < 9; run++)
            ;
        out[at++] = in[i];
        if (run > 1)
            out[at++] = (char)('0' + run);
    }
    return at;
}

LAYER int parse_request(char *text, struct request *r)
{
    char *path = strchr(text, ' '), *end;
    if (strncmp(text, "GET ", 4) != 0 || path == NULL || (end = strchr(path + 1, ' ')) == NULL)
        return -1;
    *end = 0;
    r->keep_alive = strcasestr(end + 1, "connection: close") == NULL;
    path++;
    if (strncmp(path, "/page/", 6) != 0 || path[6] == 0)
        return -1;
    snprintf(r->key, sizeof r->key, "%s", path + 6);
    for (char *c = r->key; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '-')
            *c = '_';
    return 0;
}

LAYER int write_response(int fd, int status, const char *body, size_t n)
{
    char out[PAGE_BYTES * 2 + 256];
    int head = snprintf(out, 256, "HTTP/1.1 %d %s\r\nContent-Length: %zu\r\n\r\n", status,
                        status == 200 ? "OK" : "Bad Request", n);
    memcpy(out + head, body, n);
    for (size_t at = 0, all = (size_t)head + n; at < all;) {
        ssize_t sent = send(fd, out + at, all - at, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return -1;
        at += (size_t)sent;
    }
    return 0;
}

LAYER int route(int fd, const struct request *r)
{
    struct page page;
    char packed[PAGE_BYTES * 2];
    if (!lookup_cache(r->key, &page)) {
        render_page(&page, r->key);
        store_cache(&page);
    }
    return write_response(fd, 200, packed, compress_page(page.body, page.length, packed));
}

/* Reads up to the empty line. Returns 0 at the end of the connection. */
LAYER size_t read_request(int fd, char *text)
{
    size_t n = 0;
    for (;;) {
        ssize_t got = recv(fd, text + n, REQUEST_BYTES - 1 - n, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return 0;
        n += (size_t)got;
        text[n] = 0;
        if (strstr(text, "\r\n\r\n") != NULL)
            return n;
        if (n == REQUEST_BYTES - 1)
            return 0;
    }
}

LAYER int handle_request(int fd)
{
    char text[REQUEST_BYTES];
    struct request r;
    if (read_request(fd, text) == 0)
        return -1;
    if (parse_request(text, &r) != 0) {
        write_response(fd, 400, "bad request\n", 12);
        return -1;
    }
    if (route(fd, &r) != 0)
        return -1;
    return r.keep_alive ? 0 : -1;
}

static void *worker(void *arg)
{
    char name[16];
    snprintf(name, sizeof name, "worker-%d", (int)(intptr_t)arg);
    pthread_setname_np(pthread_self(), name);
    for (;;) {
        int fd = accept(listening, NULL, NULL), one = 1;
        if (fd < 0) {
            if (errno == EINTR || errno == ECONNABORTED)
                continue;
            perror("accept");
            exit(1);
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        while (handle_request(fd) == 0)
            ;
        close(fd);
    }
    return NULL;
}

static int listen_on(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t size = sizeof at;
    int one = 1;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listening < 0 || setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
        bind(listening, (struct sockaddr *)&at, sizeof at) != 0 || listen(listening, 64) != 0 ||
        getsockname(listening, (struct sockaddr *)&at, &size) != 0)
        return -1;
    return ntohs(at.sin_port);
}

int main(int argc, char **argv)
{
    int port = listen_on(argc > 1 ? atoi(argv[1]) : 0), sig;
    sigset_t ends;
    if (port < 0) {
        perror("server: listen");
        return 1;
    }
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    for (int i = 0; i < WORKERS; i++) {
        pthread_t t;
        if ((errno = pthread_create(&t, NULL, worker, (void *)(intptr_t)i)) != 0) {
            perror("server: thread");
            return 1;
        }
    }
    printf("listening on %d\n", port);
    fflush(stdout);
    sigwait(&ends, &sig);
    return 0;
}
