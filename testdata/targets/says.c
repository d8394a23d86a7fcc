/*
 * says THREADS ROUNDS: each thread says things by every macro of callreel.h, and logs what it says. It starts when a line comes on stdin,
 * prints its log, one line a mark, then "logged", and stays until stdin ends. A line of the log has, with tabs between:
 *
 *   said  thread  kind  title  arguments, with | between
 *
 * It is C, and by says.cc C++.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "../../mark/header/callreel.h"
#include "target.h"
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>

struct lane {
    pthread_t thread;
    unsigned number;
    long tid;
    char *log;
    size_t used, room;
};

/* The same title in the two ways that braces can be written in. */
#if defined __aarch64__ && !defined __clang__
#define BRACES(before) before "{odd|name}"
#else
#define BRACES(before) before "%{odd|name%}"
#endif

static unsigned rounds;

/* Adds a line to the log of a lane. */
__attribute__((format(printf, 4, 5))) static void say(struct lane *l, const char *kind, const char *title, const char *format, ...)
{
    char line[512];
    va_list args;
    int n = snprintf(line, sizeof line, "said\t%ld\t%s\t%s\t", l->tid, kind, title);
    va_start(args, format);
    n += vsnprintf(line + n, sizeof line - (size_t)n, format, args);
    va_end(args);
    line[n++] = '\n';
    if (l->used + (size_t)n > l->room) {
        l->room = 2 * l->room + 4096;
        l->log = (char *)realloc(l->log, l->room);
        CHECK(l->log != NULL);
    }
    memcpy(l->log + l->used, line, (size_t)n);
    l->used += (size_t)n;
}

#ifdef __cplusplus
/* Each instance has markers of its own. */
template <typename T> static void counts(struct lane *l, T value, const char *format)
{
    CALLREEL_COUNTER("of a type", value);
    say(l, "counter", "of a type", format, value);
}

/* A scope ends, too, where an exception leaves it. */
static void throws(struct lane *l, unsigned i)
{
    CALLREEL_SCOPE("thrown", i);
    say(l, "begin", "thrown", "%u", i);
    throw i;
}
#endif

TRACED static void once(struct lane *l, unsigned i)
{
    char late[32], text[48];
    const char *kept = i % 16 == 15 ? NULL : text;
    unsigned long long id = (unsigned long long)l->number << 40 | i;
    double half = i / 2.0;

    snprintf(late, sizeof late, "late %u", i % 5);
    snprintf(text, sizeof text, "round %u of %u", i, l->number);

    CALLREEL_BEGIN("frame", i, CALLREEL_STR(text));
    say(l, "begin", "frame", "%u|%s", i, text);
    CALLREEL_BEGIN(BRACES("100%% "), half, (short)-5, (unsigned char)i);
    say(l, "begin", "100% {odd|name}", "%g|-5|%u", half, (unsigned char)i);
    CALLREEL_BEGIN_S(late, -(long)i);
    say(l, "begin", late, "%ld", -(long)i);
    CALLREEL_ASYNC_BEGIN("request", id, CALLREEL_STR(kept));
    say(l, "async-begin", "request", "%llu|%s", id, kept ? kept : "null");
    CALLREEL_FLOW_OUT("job", id);
    say(l, "flow-out", "job", "%llu", id);
    CALLREEL_COUNTER("queue", (int)i - 100);
    say(l, "counter", "queue", "%d", (int)i - 100);
    CALLREEL_COUNTER("share", half);
    say(l, "counter", "share", "%g", half);
    CALLREEL_COUNTER_F("load", i);
    say(l, "counter", "load", "%u", i);
    CALLREEL_COUNTER_S(late, i);
    say(l, "counter", late, "%u", i);
    CALLREEL_COUNTER_F_S(late, half);
    say(l, "counter", late, "%g", half);
    CALLREEL_END_OF("100%% \173odd|name\175", i);
    say(l, "end", "100% {odd|name}", "%u", i);
    CALLREEL_ASYNC_STEP("request", id);
    say(l, "async-step", "request", "%llu", id);
    CALLREEL_ASYNC_BEGIN_S(late, id);
    say(l, "async-begin", late, "%llu", id);
    CALLREEL_ASYNC_STEP_S(late, id, 7);
    say(l, "async-step", late, "%llu|7", id);
    CALLREEL_ASYNC_END_S(late, id);
    say(l, "async-end", late, "%llu", id);
    {
        CALLREEL_SCOPE("scope", i, i + 1, i + 2, i + 3);
        say(l, "begin", "scope", "%u|%u|%u|%u", i, i + 1, i + 2, i + 3);
        CALLREEL_FLOW_IN("job", id);
        say(l, "flow-in", "job", "%llu", id);
        CALLREEL_FLOW_OUT_S(late, id);
        say(l, "flow-out", late, "%llu", id);
        CALLREEL_FLOW_IN_S(late, id);
        say(l, "flow-in", late, "%llu", id);
    }
    say(l, "end", "", "%s", "");
    CALLREEL_INSTANT("moment");
    say(l, "instant", "moment", "%s", "");
    CALLREEL_INSTANT_S(late, CALLREEL_STR(text), id);
    say(l, "instant", late, "%s|%llu", text, id);
    CALLREEL_ASYNC_END("request", id, half);
    say(l, "async-end", "request", "%llu|%g", id, half);
    if (CALLREEL_RECORDING()) {
        CALLREEL_INSTANT("recorded");
        say(l, "instant", "recorded", "%s", "");
    }
#ifdef __cplusplus
    counts(l, i, "%u");
    counts(l, half, "%g");
    counts(l, (long long)-7, "%lld");
    try {
        throws(l, i);
    } catch (unsigned) {
        say(l, "end", "", "%s", "");
    }
#endif
    CALLREEL_END();
    say(l, "end", "", "%s", "");
}

static void *run(void *arg)
{
    struct lane *l = (struct lane *)arg;
    char name[64];
    l->tid = syscall(SYS_gettid);
    snprintf(name, sizeof name, "worker %u by its own name", l->number);
    CALLREEL_THREAD_NAME(name);
    say(l, "thread-name", "", "%s", name);
    for (unsigned i = 0; i < rounds; i++)
        once(l, i);
    return NULL;
}

int main(int argc, char **argv)
{
    unsigned n = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    static struct lane lanes[64];

    rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 100;
    CHECK(n >= 1 && n <= 64);
    target_ready();
    target_wait_line();
    for (unsigned i = 0; i < n; i++) {
        lanes[i].number = i;
        CHECK(pthread_create(&lanes[i].thread, NULL, run, &lanes[i]) == 0);
    }
    for (unsigned i = 0; i < n; i++)
        pthread_join(lanes[i].thread, NULL);
    for (unsigned i = 0; i < n; i++)
        fwrite(lanes[i].log, 1, lanes[i].used, stdout);
    printf("logged\n");
    fflush(stdout);
    target_wait_line();
    printf("says semaphore=%u ok\n", (unsigned)CALLREEL_RECORDING());
    return 0;
}
