/*
 * stall: a thread that rests in its wait and, told by SIGUSR1, is kept from going back
 * there for a third of a second by what the first argument names: lock, condition, pipe,
 * socket, sleep, timer, child, nested (turns of the same loop) or compute. With "worker" it
 * is the second thread that computes, and with "reader" the main thread rests in read(2)
 * and is never kept. With "ticker" it rests in epoll_wait(2) and says "tick" each time that
 * its time is over. With "leaderless" the main thread ends at once, and another one rests.
 * Ends with its stdin.
 */
#define _GNU_SOURCE
#include "target.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

static const struct timespec third = {.tv_nsec = 333000000};
static volatile sig_atomic_t asked;
static volatile uint64_t sum;
static int done, jobs, fds[2], timer;
static unsigned long long handled;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t both;

static void on_signal(int sig)
{
    (void)sig;
    asked = 1;
}

static int is_over(const struct timespec *from)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - from->tv_sec) * 1000000000 + now.tv_nsec - from->tv_nsec >= third.tv_nsec;
}

static void compute(void)
{
    struct timespec from;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do {
        for (int i = 0; i < 10000; i++)
            sum += (uint64_t)i * i;
    } while (!is_over(&from));
}

TRACED int turn(const char *mode, int milliseconds);

/* Ends what keeps the main thread, after a while. */
static void *other(void *mode)
{
    if (strcmp(mode, "lock") == 0)
        pthread_mutex_lock(&mutex);
    pthread_barrier_wait(&both);
    nanosleep(&third, NULL);
    if (strcmp(mode, "lock") == 0)
        pthread_mutex_unlock(&mutex);
    pthread_mutex_lock(&guard);
    done = 1;
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&guard);
    if (fds[1] > 0)
        CHECK(write(fds[1], "x", 1) == 1);
    return NULL;
}

TRACED int kept_by(const char *mode)
{
    char c;
    if (strcmp(mode, "lock") == 0) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    } else if (strcmp(mode, "condition") == 0) {
        pthread_mutex_lock(&guard);
        while (!done)
            pthread_cond_wait(&condition, &guard);
        pthread_mutex_unlock(&guard);
    } else if (strcmp(mode, "pipe") == 0 || strcmp(mode, "socket") == 0) {
        while (read(fds[0], &c, 1) < 0)
            CHECK(errno == EINTR);
    } else if (strcmp(mode, "sleep") == 0) {
        nanosleep(&third, NULL);
    } else if (strcmp(mode, "timer") == 0) {
        struct epoll_event event;
        while (epoll_wait(timer, &event, 1, third.tv_nsec / 1000000) < 0)
            CHECK(errno == EINTR);
    } else if (strcmp(mode, "nested") == 0) {
        struct timespec from;
        clock_gettime(CLOCK_MONOTONIC, &from);
        do {
            CHECK(turn(mode, 1) >= 0);
        } while (!is_over(&from));
    } else if (strcmp(mode, "child") == 0) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            nanosleep(&third, NULL);
            _exit(0);
        }
        while (waitpid(child, NULL, 0) < 0)
            CHECK(errno == EINTR);
    } else {
        compute();
    }
    return 1;
}

TRACED int handle(const char *mode)
{
    pthread_t thread;
    if (strcmp(mode, "worker") == 0) {
        pthread_mutex_lock(&guard);
        jobs++;
        pthread_cond_broadcast(&condition);
        return pthread_mutex_unlock(&guard) + 1;
    }
    done = 0;
    CHECK(pthread_create(&thread, NULL, other, (void *)mode) == 0);
    pthread_barrier_wait(&both);
    int ok = kept_by(mode);
    pthread_join(thread, NULL);
    return ok;
}

TRACED int work(void)
{
    compute();
    return 1;
}

static void *worker(void *arg)
{
    (void)arg;
    for (;;) {
        pthread_mutex_lock(&guard);
        while (jobs == 0)
            pthread_cond_wait(&condition, &guard);
        jobs--;
        pthread_mutex_unlock(&guard);
        CHECK(work() == 1);
    }
    return NULL;
}

/* Waits once, and handles what was asked for. */
TRACED int turn(const char *mode, int milliseconds)
{
    char c;
    struct pollfd in = {.fd = 0, .events = POLLIN};
    struct epoll_event event;
    int ended = 0;
    if (strcmp(mode, "reader") == 0) {
        ended = read(0, &c, 1) == 0;
    } else if (strcmp(mode, "ticker") == 0) {
        ended = epoll_wait(timer, &event, 1, 300) > 0;
        puts("tick");
        fflush(stdout);
    } else if (strcmp(mode, "timer") == 0) {
        ended = epoll_wait(timer, &event, 1, milliseconds) > 0;
    } else {
        ended = poll(&in, 1, milliseconds) > 0;
    }
    if (asked) {
        asked = 0;
        handled += handle(mode);
    }
    return ended;
}

static void *rest(void *arg)
{
    target_ready();
    while (!turn(arg, 20))
        ;
    printf("stall handled=%llu ok\n", handled);
    exit(0);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    struct sigaction act = {.sa_handler = on_signal};
    CHECK(argc == 2);
    pthread_barrier_init(&both, NULL, 2);
    if (strcmp(argv[1], "pipe") == 0)
        CHECK(pipe(fds) == 0);
    if (strcmp(argv[1], "socket") == 0)
        CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    if (strcmp(argv[1], "worker") == 0) {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, NULL);
        CHECK(pthread_create(&thread, NULL, worker, NULL) == 0);
        pthread_sigmask(SIG_UNBLOCK, &all, NULL);
    }
    CHECK((timer = epoll_create1(0)) >= 0);
    if (strcmp(argv[1], "ticker") == 0 || strcmp(argv[1], "timer") == 0)
        CHECK(epoll_ctl(timer, EPOLL_CTL_ADD, 0, &(struct epoll_event){.events = EPOLLIN}) == 0);
    sigaction(SIGUSR1, &act, NULL);
    if (strcmp(argv[1], "leaderless") == 0) {
        CHECK(pthread_create(&thread, NULL, rest, argv[1]) == 0);
        pthread_exit(NULL);
    }
    target_ready();
    while (!turn(argv[1], 20))
        ;
    printf("stall handled=%llu ok\n", handled);
    return 0;
}
