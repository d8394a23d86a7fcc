/*
 * How a target talks to the test that started it.
 *
 * It prints "ready" once it is set up, works until its stdin ends (or, in modes
 * of a fixed number of calls, starts when a line or the end of stdin comes),
 * and ends with one line "NAME key=number ... ok". A target that finds a wrong
 * result says where on stderr and exits with code 1 at once.
 */
#ifndef TARGET_H
#define TARGET_H

#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A function that stays one: not inlined, not cloned, every call made, and the
 * caller knows nothing about it. */
#define TRACED __attribute__((noipa))

#define CHECK(condition)                                                      \
    do {                                                                      \
        if (!(condition))                                                     \
            target_fail(__FILE__, __LINE__, #condition);                      \
    } while (0)

__attribute__((noreturn, cold, unused)) static void
target_fail(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: wrong: %s\n", file, line, condition);
    fflush(NULL);
    _exit(1);
}

__attribute__((unused)) static void target_ready(void)
{
    puts("ready");
    fflush(stdout);
}

/* Whether stdin has ended (or a byte has come, which nobody but a test sends). */
__attribute__((unused)) static int target_told_to_stop(void)
{
    struct pollfd in = {.fd = 0, .events = POLLIN, .revents = 0};
    return poll(&in, 1, 0) > 0;
}

/* Waits for a line on stdin, or its end. */
__attribute__((unused)) static void target_wait_line(void)
{
    char c;
    while (read(0, &c, 1) == 1 && c != '\n')
        ;
}

/* One number of a splitmix64 sequence: patterns that differ in every byte. */
__attribute__((unused)) static inline uint64_t target_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

#endif
