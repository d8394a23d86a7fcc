/*
 * Calls functions with arguments of every kind, the same in each run: values
 * come from a fixed seed, and pointers that are recorded as such are numbers.
 * Each result is also an argument of a function that is called just behind, so
 * that a debugger needs no more than breakpoints.
 *
 *   arguments ROUNDS [MILLISECONDS to wait before, and at the end]
 *   arguments ROUNDS wait: for a line before, for the end of stdin at the end
 */
#include "target.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALLED __attribute__((noinline, used))
#define KEEP __asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop" ::: "memory")

enum color { RED, GREEN = 5, BLUE = -2 };
enum bits { ONE = 1, TWO = 2, FOUR = 4 };
struct client {
    int argc;
    char **argv;
    char name[16];
    struct client *next;
    double weight;
    short small;
};
struct pair { int a; float b; };
struct floats { float a, b, c; };
struct big { long a, b, c; };

CALLED long integers(int8_t a, uint8_t b, int16_t c, uint16_t d, int e, unsigned f, long g, unsigned long h)
{
    KEEP;
    return a + b + c + d + e + f + g + h;
}

CALLED bool mixed(bool a, char b, enum color c, float d, double e, void *p, enum bits f)
{
    KEEP;
    return a ^ (b > 'k') ^ (c == RED) ^ (d > e) ^ (p == 0) ^ f;
}

CALLED const char *texts(const char *s, char *t, int n, const void *raw)
{
    KEEP;
    return n % 3 ? s + 1 : t;
}

CALLED double structs(struct client *c, struct pair p, struct big g, const struct client *bad, struct floats q)
{
    KEEP;
    return c->weight + p.a + p.b + g.a + q.c + (bad == c);
}

CALLED struct pair paired(enum color c, long n)
{
    KEEP;
    return (struct pair){(int)n, c * 0.25f};
}

CALLED struct big large(long n, ...)
{
    KEEP;
    return (struct big){n, -n, n * n};
}

CALLED void got_long(long v) { KEEP; }
CALLED void got_bool(bool v) { KEEP; }
CALLED void got_text(const char *v) { KEEP; }
CALLED void got_double(double v) { KEEP; }
CALLED void got_pair(struct pair v) { KEEP; }

static uint64_t seed = 42;

static uint64_t next(void)
{
    uint64_t z = seed += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 10;
    int waits = argc > 2 && strcmp(argv[2], "wait") == 0;
    if (waits) {
        target_ready();
        target_wait_line();
    } else if (argc > 2)
        usleep(1000 * atoi(argv[2]));
    char *words[] = {"one", "two", "three", NULL};
    struct client last = {7, words, "the last of all", NULL, 2.5, -7};
    for (long i = 0; i < rounds; i++) {
        static const enum color colors[] = {RED, GREEN, BLUE, (enum color)3};
        struct client c = {(int)next(), words + i % 3, "", i % 4 ? &last : NULL, (int)next() / 8.0, (short)next()};
        char text[160];
        snprintf(c.name, sizeof c.name, "client %ld", i);
        int n = snprintf(text, sizeof text, "text %ld %.*s", i, (int)(next() % 100), "which is sometimes longer than what is recorded of it, and sometimes it is shorter than that is");
        got_long(integers(next(), next(), next(), next(), next(), next(), next(), next()));
        got_bool(mixed(next() & 1, (char)next(), colors[next() % 4], (int)next() / 16.0f, (int)next() / 32.0, (void *)(next() >> 20), next() % 8));
        got_text(texts(text, i % 5 == 0 ? (char *)8 : i % 5 == 1 ? NULL : text + 3, n % 80, text));
        got_double(structs(&c, (struct pair){(int)next(), (int)next() / 4.0f}, (struct big){next(), next(), next()}, i % 2 ? &last : (void *)16,
                           (struct floats){i, i / 2.0f, -i}));
        got_pair(paired(colors[i % 4], i * 3));
        large(i, 2.5);
    }
    if (waits) {
        puts("counted");
        fflush(stdout);
        target_wait_line();
        printf("arguments rounds=%ld ok\n", rounds);
    } else if (argc > 2)
        usleep(1000 * atoi(argv[2]));
    return 0;
}
