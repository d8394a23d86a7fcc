/*
 * sandbox MODE: calls functions from several threads, and on a line on stdin
 * restricts its own system calls, so that anything but read, write and exit is
 * its death. Then it calls on, prints "restricted" and waits for the end of
 * stdin.
 *
 *   prctl    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER)
 *   strict   prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)
 *   syscall  syscall(SYS_seccomp), for this thread only; it is the only one
 *   threads  syscall(SYS_seccomp) with SECCOMP_FILTER_FLAG_TSYNC: four threads
 *            meet the filter wherever they are
 *   ask      only asks whether there is seccomp, and goes on until stdin ends
 *   child    a forked child does it, and the process goes on until stdin ends
 */
#define _GNU_SOURCE
#include "target.h"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define THREADS 4
#define AFTER 3000000 /* calls after the restriction: many chunks of the ring */

static atomic_int threads_begun, threads_done;

TRACED uint64_t leaf(uint64_t x)
{
    return x * 3 + 1;
}

static void work(long n)
{
    uint64_t x = 1;
    for (long i = 0; i < n; i++) {
        uint64_t y = leaf(x);
        if (y != x * 3 + 1)
            syscall(SYS_exit_group, 1);
        x = y;
    }
}

#define ALLOW(nr)                                                             \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static struct sock_filter code[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    ALLOW(SYS_read), ALLOW(SYS_write), ALLOW(SYS_exit), ALLOW(SYS_exit_group),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};
static struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};

static void *thread_main(void *arg)
{
    (void)arg;
    atomic_fetch_add(&threads_begun, 1); /* beginning takes system calls */
    work(AFTER);
    atomic_fetch_add(&threads_done, 1);
    for (;;)
        work(1000); /* ending a thread takes system calls */
}

static void ask(void)
{
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) < 0 && errno == EFAULT);
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, NULL) < 0 && errno == EFAULT);
}

static void go_on(const char *mode, uint64_t children)
{
    puts("done");
    fflush(stdout);
    while (!target_told_to_stop())
        work(100000);
    printf("sandbox %s=%lu ok\n", mode, (unsigned long)children);
    exit(0);
}

static uint64_t child(void)
{
    int status;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
        work(AFTER / 10);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    return 1;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "prctl";
    static const char restricted[] = "restricted\n", done[] = "sandbox ok=1 ok\n";
    char c;
    pthread_t t;

    target_ready();
    work(100000);
    if (strcmp(mode, "threads") == 0)
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_create(&t, NULL, thread_main, NULL) == 0);
    target_wait_line();
    if (strcmp(mode, "threads") == 0)
        do
            work(1000); /* of the others none may have had its turn since recording began */
        while (atomic_load(&threads_begun) < THREADS);
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (strcmp(mode, "ask") == 0) {
        ask();
        go_on("asked", 1);
    } else if (strcmp(mode, "child") == 0) {
        go_on("children", child());
    } else if (strcmp(mode, "prctl") == 0) {
        CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    } else if (strcmp(mode, "strict") == 0) {
        CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
    } else {
        unsigned flags = strcmp(mode, "threads") == 0 ? SECCOMP_FILTER_FLAG_TSYNC : 0;
        CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) == 0);
    }
    work(AFTER);
    if (strcmp(mode, "threads") == 0)
        while (atomic_load(&threads_done) < THREADS)
            work(1000);
    if (write(1, restricted, sizeof restricted - 1) < 0)
        syscall(SYS_exit, 1);
    while (read(0, &c, 1) > 0)
        work(1000);
    if (write(1, done, sizeof done - 1) < 0)
        syscall(SYS_exit, 1);
    syscall(strcmp(mode, "strict") == 0 ? SYS_exit : SYS_exit_group, 0);
    return 1;
}
