// For cc, not for the go command, which takes a .c file in a package for cgo.

/*
 * What the planted programs share: threads that handle requests, at random
 * moments and with a natural scatter, and a log of how long each took. It is
 * all of one translation unit, so that each program is one command to build.
 *
 * A program is started as PROGRAM SECONDS [SEED], in a folder of its own. It
 * prints "ready" once it serves, and ends by itself with one line of JSON.
 */
#ifndef SERVER_H
#define SERVER_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A function that stays one: its name and its calls are what a recording shows. */
#define FN __attribute__((noipa))
#define UNUSED __attribute__((unused))

struct request {
    unsigned id, thread;
    int odd;       /* the rare request, or the moment, that meets the cause */
    uint64_t seed; /* of what varies by nature */
    char text[256];
    char reply[512];
};

struct server {
    void (*handle)(struct request *);
    int threads;  /* that handle requests; 2 if 0 */
    int every_ms; /* between odd requests; 0 for none */
    int pause_us; /* between requests of a thread, on average; 400 if 0 */
    int slow_ms;  /* what counts as slow in the log */
};

static volatile int serving = 1;
static struct {
    const struct server *how;
    uint64_t end, next_odd;
    unsigned ids, odds;
    float *took[64];
    unsigned n[64];
    uint64_t seed;
} the_server;
enum { MOST_REQUESTS = 1 << 17 };

static inline uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t draw(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed * 0x2545f4914f6cdd1du;
}

/* Evenly from [0, 1). */
static inline double uniform(uint64_t *seed) { return (double)(draw(seed) >> 11) / 9007199254740992.0; }

/* Exponentially, with the mean 1, cut at 6: by range reduction, for no libm. */
static inline double exponential(uint64_t *seed)
{
    double u = 1 - uniform(seed), x = 0;
    while (u < 0.5 && x < 6) {
        u *= 2;
        x += 0.6931471805599453;
    }
    double y = 1 - u; /* -ln(1-y), y in [0, 0.5] */
    x += y * (1 + y * (0.5 + y * (1.0 / 3 + y * (0.25 + y * 0.2))));
    return x < 6 ? x : 6;
}

UNUSED static void die(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

UNUSED static void sleep_us(unsigned us)
{
    struct timespec t = {us / 1000000, (long)(us % 1000000) * 1000};
    nanosleep(&t, NULL);
}

/* Until the program ends, or for us microseconds: background threads pause with it. */
UNUSED static void pause_ms(unsigned ms)
{
    for (; serving && ms > 20; ms -= 20)
        sleep_us(20000);
    if (serving)
        sleep_us(ms * 1000);
}

/* This thread, and those that it makes, run on one processor. */
UNUSED static void stay_on(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set); /* on a machine with one processor it is there anyway */
}

struct starting {
    void (*run)(void);
    const char *name;
};

static void *background_main(void *arg)
{
    struct starting s = *(struct starting *)arg;
    free(arg);
    prctl(PR_SET_NAME, s.name);
    s.run();
    return NULL;
}

/* Starts a thread that runs run, which has to return soon after serving is 0. */
UNUSED static pthread_t background(const char *name, void (*run)(void))
{
    pthread_t t;
    struct starting *s = (struct starting *)malloc(sizeof *s);
    s->run = run;
    s->name = name;
    if ((errno = pthread_create(&t, NULL, background_main, s)) != 0)
        die("thread");
    return t;
}

/* --- ordinary work, whose time scatters --- */

FN static uint32_t mix_block(const unsigned char *p, unsigned n, uint32_t h)
{
    for (unsigned i = 0; i < n; i++)
        h = (h ^ p[i]) * 16777619u;
    return h;
}

/* About half a microsecond for each unit, whatever n is. */
FN UNUSED static uint32_t mix(const void *p, unsigned n, unsigned units)
{
    unsigned char block[512];
    uint32_t h = 2166136261u;
    for (unsigned i = 0; i < sizeof block; i++)
        block[i] = ((const unsigned char *)p)[i % n];
    for (unsigned i = 0; i < units; i++)
        h = mix_block(block, sizeof block, h);
    return h;
}

FN static const char *next_token(const char *p, char *token, unsigned size)
{
    unsigned n = 0;
    while (*p == ' ' || *p == '\n')
        p++;
    while (*p != 0 && *p != ' ' && *p != '\n') {
        if (n + 1 < size)
            token[n++] = *p;
        p++;
    }
    token[n] = 0;
    return p;
}

FN UNUSED static unsigned parse_request(struct request *r)
{
    char token[64];
    unsigned n = 0, words = 6 + (unsigned)(uniform(&r->seed) * 8);
    int length = snprintf(r->text, sizeof r->text, "GET /item/%u HTTP/1.1\n", r->id % 977);
    for (unsigned i = 0; i < words && length < 230; i++)
        length += snprintf(r->text + length, sizeof r->text - (size_t)length, "k%u=%u ", i, (unsigned)draw(&r->seed) % 1000);
    for (const char *p = r->text; *p != 0; n++)
        p = next_token(p, token, sizeof token);
    return n;
}

FN static void put_field(struct request *r, unsigned i, uint32_t v)
{
    snprintf(r->reply + i % 16 * 24, 24, "f%u: %u\n", i, v);
}

/* Some tens of microseconds, at times thrice as much. */
FN UNUSED static void render_reply(struct request *r)
{
    unsigned fields = 8 + (unsigned)(uniform(&r->seed) * 8);
    for (unsigned i = 0; i < fields; i++)
        put_field(r, i, mix(r->text, 200, 2 + (unsigned)(exponential(&r->seed) * 6)));
}

/* --- serving --- */

static int take_odd(uint64_t now)
{
    const struct server *s = the_server.how;
    uint64_t next = __atomic_load_n(&the_server.next_odd, __ATOMIC_RELAXED);
    if (s->every_ms == 0 || now < next)
        return 0;
    uint64_t after = now + (uint64_t)s->every_ms * 1000000u;
    if (!__atomic_compare_exchange_n(&the_server.next_odd, &next, after, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return 0;
    __atomic_fetch_add(&the_server.odds, 1, __ATOMIC_RELAXED);
    return 1;
}

static void *serve_requests(void *arg)
{
    const struct server *s = the_server.how;
    unsigned me = (unsigned)(uintptr_t)arg;
    uint64_t seed = the_server.seed * 7919 + me * 104729 + 17;
    char name[16];
    snprintf(name, sizeof name, "worker-%u", me);
    prctl(PR_SET_NAME, name);
    struct request *r = (struct request *)calloc(1, sizeof *r);
    while (serving && now_ns() < the_server.end) {
        sleep_us(20 + (unsigned)(exponential(&seed) * (s->pause_us ? s->pause_us : 400)));
        r->id = __atomic_add_fetch(&the_server.ids, 1, __ATOMIC_RELAXED);
        r->thread = me;
        r->seed = draw(&seed) | 1;
        uint64_t start = now_ns();
        r->odd = take_odd(start);
        s->handle(r);
        if (the_server.n[me] < MOST_REQUESTS)
            the_server.took[me][the_server.n[me]++] = (float)((double)(now_ns() - start) / 1e3);
    }
    free(r);
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

static void print_log(void)
{
    const struct server *s = the_server.how;
    unsigned n = 0, slow = 0;
    int threads = s->threads ? s->threads : 2;
    for (int i = 0; i < threads; i++)
        n += the_server.n[i];
    float *all = (float *)malloc((n + 1) * sizeof *all);
    unsigned k = 0;
    for (int i = 0; i < threads; i++) {
        memcpy(all + k, the_server.took[i], the_server.n[i] * sizeof *all);
        k += the_server.n[i];
    }
    qsort(all, n, sizeof *all, by_value);
    while (slow < n && s->slow_ms > 0 && all[n - 1 - slow] >= (float)s->slow_ms * 1000)
        slow++;
    unsigned ordinary = n - slow;
    printf("{\"requests\":%u,\"p50_us\":%.0f,\"p95_us\":%.0f,\"p99_us\":%.0f,\"slow\":%u,\"slow_p50_us\":%.0f,\"max_us\":%.0f}\n", n,
           (double)(ordinary ? all[ordinary / 2] : 0), (double)(ordinary ? all[ordinary * 95 / 100] : 0),
           (double)(ordinary ? all[ordinary * 99 / 100] : 0), slow, (double)(slow ? all[n - 1 - slow / 2] : 0), (double)(n ? all[n - 1] : 0));
    free(all);
}

static void stop_serving(int sig)
{
    (void)sig;
    the_server.end = 0;
}

/* Serves until the time is over, or SIGTERM comes. Returns the exit code. */
static int serve(int argc, char **argv, const struct server *s)
{
    pthread_t workers[64];
    int threads = s->threads ? s->threads : 2;
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    the_server.how = s;
    the_server.seed = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTERM, stop_serving);
    alarm((unsigned)seconds + 20); /* ends it if a thread doesn't */
    uint64_t now = now_ns();
    the_server.end = now + (uint64_t)(seconds * 1e9);
    the_server.next_odd = now + 60000000u;
    printf("ready\n");
    fflush(stdout);
    for (int i = 0; i < threads; i++) {
        the_server.took[i] = (float *)malloc(MOST_REQUESTS * sizeof(float));
        if ((errno = pthread_create(&workers[i], NULL, serve_requests, (void *)(uintptr_t)i)) != 0)
            die("thread");
    }
    for (int i = 0; i < threads; i++)
        pthread_join(workers[i], NULL);
    serving = 0;
    print_log();
    fflush(stdout);
    _exit(0); /* background threads may still pause */
}

/* Starts a process that runs run and ends with this one. */
UNUSED static pid_t child(void (*run)(void))
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(1); /* whoever reads the log waits for its end */
    run();
    _exit(0);
}
#endif
