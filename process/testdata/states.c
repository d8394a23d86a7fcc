// One thread in the state that its argument names, or idle threads. Prints
// "ready" first. On SIGUSR1, handled on any thread, it counts; at the end of its
// standard input or after its state has passed it prints the outcome.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t handled;
static void count(int sig) { (void)sig; handled++; }

static int filter(int denied, int action) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, denied, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void *leaderless(void *arg) {
    (void)arg;
    usleep(50000);
    puts("ready");
    fflush(stdout);
    char c;
    ssize_t n = read(0, &c, 1);
    puts(n >= 0 ? "ok" : strerror(errno));
    exit(n < 0);
}

int main(int argc, char **argv) {
    const char *state = argc > 1 ? argv[1] : "read";
    struct sigaction act = {.sa_handler = count, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &act, 0);
    if (!strcmp(state, "leaderless")) {
        pthread_t t;
        if (pthread_create(&t, 0, leaderless, 0)) return 4;
        pthread_exit(0);
    }
    if (!strcmp(state, "memfd-kills") && filter(SYS_memfd_create, SECCOMP_RET_KILL_PROCESS)) return 3;
    if (!strcmp(state, "memfd-fails") && filter(SYS_memfd_create, SECCOMP_RET_ERRNO | EPERM)) return 3;
    if (!strcmp(state, "other-filtered") && filter(SYS_reboot, SECCOMP_RET_KILL_PROCESS)) return 3;
    if (!strcmp(state, "no-sigreturn") && filter(SYS_rt_sigreturn, SECCOMP_RET_KILL_PROCESS)) return 3;
    if (!strcmp(state, "no-pselect") && filter(SYS_pselect6, SECCOMP_RET_KILL_PROCESS)) return 3;
    puts("ready");
    fflush(stdout);
    int r = 0;
    if (!strcmp(state, "strict") && prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) return 3;
    if (!strcmp(state, "nanosleep")) {
        struct timespec t = {1, 0};
        r = nanosleep(&t, 0);
    } else if (!strcmp(state, "poll")) {
        r = poll(0, 0, 1000);
    } else if (!strcmp(state, "pause")) {
        sigset_t set;
        sigemptyset(&set);
        r = sigsuspend(&set) == -1 && errno == EINTR && handled == 1 ? 0 : -1;
    } else if (!strcmp(state, "vfork")) {
        if (vfork() == 0) {
            struct timespec t = {1, 0};
            nanosleep(&t, 0);
            _exit(0);
        }
    } else if (!strcmp(state, "stop-self")) {
        raise(SIGSTOP);
    } else if (!strcmp(state, "spin")) {
        time_t end = time(0) + 2;
        while (time(0) < end) ;
    } else {
        char c;
        ssize_t n = syscall(SYS_read, 0, &c, 1);
        r = n < 0 ? -1 : 0;
    }
    if (!strcmp(state, "strict")) {
        if (write(1, "ok\n", 3) != 3) r = 1;
        syscall(SYS_exit, r);
    }
    if (r) printf("%s: %s, handled %d\n", state, strerror(errno), handled);
    else puts("ok");
    return r != 0;
}
