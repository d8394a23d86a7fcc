// Waits with a timeout under a seccomp filter that forbids restart_syscall and, with an
// argument, since the wait began, the wait itself. Prints "ready" before, and after it
// what became of it, in the end "ok".
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef SYS_poll
#define POLL SYS_poll
#define POLL_TIME(ms) (ms)
#else // newer processors' Linux has only the newer call
#define POLL SYS_ppoll
#define POLL_TIME(ms) &(struct timespec){(ms) / 1000, (ms) % 1000 * 1000000}, 0, 0
#endif

#define ALLOW(nr) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static struct sock_filter code[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    ALLOW(SYS_read), ALLOW(SYS_write), ALLOW(SYS_exit_group), ALLOW(POLL),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};
static struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
static volatile int begun;

static void say(const char *s, int n) { if (write(1, s, n) < 0) syscall(SYS_exit_group, 1); }

static void *restrict_all(void *arg) {
    while (!begun) usleep(1000);
    usleep(50000);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program)) syscall(SYS_exit_group, 2);
    say("ready\n", 6);
    char c;
    while (syscall(SYS_read, 0, &c, 1) > 0) ;
    while (begun) ; /* the other ends it */
    return arg;
}

int main(int argc, char **argv) {
    (void)argv;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return 3;
    pthread_t t;
    if (argc > 1) {
        if (pthread_create(&t, 0, restrict_all, 0)) return 4;
        struct timespec wait = {1, 0};
        begun = 1;
        long r = syscall(SYS_nanosleep, &wait, &wait);
        if (r != 0 && errno != EINTR) syscall(SYS_exit_group, 5);
    } else {
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 6;
        say("ready\n", 6);
        if (syscall(POLL, 0, 0, POLL_TIME(700)) != 0) syscall(SYS_exit_group, 7);
    }
    say("ok\n", 3);
    syscall(SYS_exit_group, 0);
}
