/*
 * shares [SECONDS]: works for so many seconds of processor time, or until stdin ends,
 * and ends with code 7. shares_f does two thirds of the work and shares_g one third,
 * turn by turn, each for so much of the thread's own time.
 *
 * shares deep DEPTH: the same work at the end of a recursion of shares_down.
 *
 * shares fork: two children, which end at once after half a second of work each, and one
 * that executes the program anew to do as much.
 */
#define _GNU_SOURCE
#include "target.h"
#include <string.h>
#include <sys/wait.h>
#include <time.h>

static volatile uint64_t sink;

static double own_time(void)
{
    struct timespec t;
    CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

/* The time is asked for seldom, so that what is sampled is the loop. */
TRACED void shares_f(double seconds)
{
    for (double end = own_time() + seconds; own_time() < end;)
        for (int i = 0; i < 20000; i++)
            sink += i;
}

TRACED void shares_g(double seconds)
{
    for (double end = own_time() + seconds; own_time() < end;)
        for (int i = 0; i < 20000; i++)
            sink ^= i;
}

TRACED void shares_work(double seconds)
{
    for (double end = own_time() + seconds; own_time() < end;) {
        shares_f(0.004);
        shares_g(0.002);
    }
}

TRACED int shares_down(int depth, double seconds)
{
    volatile char room[64]; /* not a loop */
    room[depth & 63] = 1;
    if (depth <= 1)
        shares_work(seconds);
    else
        room[0] += shares_down(depth - 1, seconds);
    return room[depth & 63];
}

static void children(const char *self)
{
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0 && i == 2) {
            execl(self, self, "0.5", (char *)NULL);
            _exit(99);
        }
        if (child == 0) {
            shares_work(0.5);
            _exit(0);
        }
    }
    for (int i = 0, status; i < 3; i++)
        CHECK(wait(&status) > 0);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "fork") == 0) {
        children(argv[0]);
    } else if (argc > 2 && strcmp(argv[1], "deep") == 0) {
        shares_down(atoi(argv[2]), 0.7);
    } else if (argc > 1) {
        shares_work(atof(argv[1]));
    } else {
        target_ready();
        while (!target_told_to_stop())
            shares_work(0.05);
        printf("shares stopped=1 ok\n");
        return 0;
    }
    return 7;
}
