/*
 * hostile_names: a program whose functions have names that a test puts in the
 * place of these, byte for byte, before it runs: some that a terminal would obey,
 * and, behind "exponential_", one that takes a demangler for ever. Its threads have
 * such names, too, and so has the pipe that one of them waits at, if an argument names it.
 */
#define _GNU_SOURCE
#include "hostile.h"
#include <pthread.h>

TRACED uint64_t escaping_name_of_a_function_that_is_replaced(uint64_t x)
{
    return hostile_leaf(x);
}

#ifndef EXPONENTIAL
#define EXPONENTIAL "exponential_name"
#endif
TRACED uint64_t exponential(uint64_t x) __asm__(EXPONENTIAL);
uint64_t exponential(uint64_t x)
{
    return hostile_leaf(x) + 1;
}

static void *run(void *arg)
{
    prctl(PR_SET_NAME, "\033]0;x\007\r\n\xc2\x9b\xe2\x80\xae");
    for (uint64_t i = 0;; i++) {
        escaping_name_of_a_function_that_is_replaced(i);
        exponential(i);
        sleep_us(200);
    }
    return arg;
}

static int pipe_fd;

TRACED uint64_t waits_at_the_pipe(uint64_t x)
{
    char c = (char)x;
    CHECK(read(pipe_fd, &c, 1) == 1);
    return hostile_leaf(x);
}

static void *wait_at_pipe(void *arg)
{
    for (uint64_t i = 0;; i++)
        waits_at_the_pipe(i);
    return arg;
}

int main(int argc, char **argv)
{
    pthread_t t;
    if (argc > 2) {
        pipe_fd = open(argv[2], O_RDWR);
        CHECK(pipe_fd >= 0 && pthread_create(&t, NULL, wait_at_pipe, NULL) == 0);
    }
    CHECK(pthread_create(&t, NULL, run, NULL) == 0);
    prctl(PR_SET_NAME, "\033[2J\033[31m\n\x7f");
    target_ready();
    while (!target_told_to_stop()) {
        escaping_name_of_a_function_that_is_replaced(1);
        sleep_us(1000);
        CHECK(pipe_fd == 0 || write(pipe_fd, "x", 1) == 1);
    }
    puts("names ok");
    return 0;
}
