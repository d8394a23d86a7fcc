/*
 * fork [CHILDREN]: makes children in every way there is, one after the other,
 * until CHILDREN of them have ended or stdin ends: fork, fork twice (a daemon),
 * vfork and exec, posix_spawn, and fork from a second thread. Each child calls
 * the same functions as its parent, checks their results and exits with 0,
 * which the parent asserts.
 */
#define _GNU_SOURCE
#include "target.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

static uint64_t children;

TRACED uint64_t step(uint64_t x)
{
    return x * 6364136223846793005u + 1442695040888963407u;
}

TRACED uint64_t walk(uint64_t x, int n)
{
    while (n-- > 0)
        x = step(x);
    return x;
}

static void verify(void)
{
    uint64_t x = 42, y = 42;
    for (int i = 0; i < 1000; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    CHECK(walk(y, 1000) == x);
}

/* A child must be able to make threads, allocate and print, not only to count. */
static void *verify_in_thread(void *arg)
{
    verify();
    return arg;
}

static void reap(pid_t pid)
{
    int status;
    pid_t got;
    CHECK(pid > 0);
    while ((got = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
        ;
    CHECK(got == pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "fork.c: child %d ended with status %#x\n", (int)pid, status);
        exit(1);
    }
    children++;
}

TRACED void by_fork(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t t;
        verify();
        CHECK(pthread_create(&t, NULL, verify_in_thread, NULL) == 0);
        CHECK(pthread_join(t, NULL) == 0);
        char *p = malloc(100000);
        CHECK(p != NULL);
        memset(p, 1, 100000);
        free(p);
        _exit(0);
    }
    reap(pid);
}

/* The grandchild is nobody's child any more; it reports through a pipe. */
TRACED void by_daemon(void)
{
    int report[2];
    char c = 0;
    CHECK(pipe(report) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (fork() == 0) {
            setsid();
            verify();
            CHECK(write(report[1], "k", 1) == 1);
        }
        _exit(0);
    }
    close(report[1]);
    reap(pid);
    CHECK(read(report[0], &c, 1) == 1 && c == 'k');
    close(report[0]);
}

/* A child that ends as most do: through exit, with its handlers and stdio. */
TRACED void by_fork_and_exit(void)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        verify();
        exit(0);
    }
    reap(pid);
}

TRACED void by_vfork(const char *self)
{
    pid_t pid = vfork();
    if (pid == 0) {
        execl(self, self, "child", NULL);
        _exit(127);
    }
    reap(pid);
}

TRACED void by_spawn(char *self)
{
    char *argv[] = {self, "child", NULL};
    pid_t pid = 0;
    CHECK(posix_spawn(&pid, self, NULL, NULL, argv, environ) == 0);
    reap(pid);
}

static void *fork_in_thread(void *arg)
{
    by_fork();
    return arg;
}

TRACED void by_thread(void)
{
    pthread_t t;
    CHECK(pthread_create(&t, NULL, fork_in_thread, NULL) == 0);
    CHECK(pthread_join(t, NULL) == 0);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "child") == 0) {
        verify();
        return 0;
    }
    uint64_t most = argc > 1 ? strtoull(argv[1], NULL, 10) : UINT64_MAX;
    target_ready();
    while (children < most && !target_told_to_stop()) {
        verify();
        by_fork();
        by_daemon();
        by_fork_and_exit();
        by_vfork("/proc/self/exe");
        by_spawn("/proc/self/exe");
        by_thread();
    }
    printf("fork children=%llu ok\n", (unsigned long long)children);
    return 0;
}
