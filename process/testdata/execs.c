// Waits, where its first argument says, until the file that its second argument names is there, and
// then replaces its program by the rest of the command. Prints "ready", and the IDs of the process
// and the thread that will do it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char **command;
static const char *go;

static void await_go(void) {
    struct timespec t = {0, 1000000};
    dprintf(1, "%d %d\n", getpid(), (int)syscall(SYS_gettid));
    while (access(go, F_OK)) nanosleep(&t, 0);
}

static void *idle(void *arg) {
    for (;;) pause();
    return arg;
}

static void *busy(void *arg) {
    for (volatile long n = 0;; n++) ;
    return arg;
}

static void *by_thread(void *arg) {
    (void)arg;
    await_go();
    execv(command[0], command);
    _exit(3);
}

static int by_child(void) {
    sigset_t all, old;
    int status = 0;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &old);
    pid_t child = vfork();
    if (child == 0) {
        await_go();
        sigprocmask(SIG_SETMASK, &old, 0);
        execv(command[0], command);
        _exit(3);
    }
    sigprocmask(SIG_SETMASK, &old, 0);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) ;
    if (WIFSIGNALED(status)) raise(WTERMSIG(status));
    return WEXITSTATUS(status);
}

int main(int argc, char **argv) {
    if (argc < 4) return 1;
    const char *mode = argv[1];
    go = argv[2];
    command = argv + 3;
    puts("ready");
    fflush(stdout);
    if (!strcmp(mode, "vfork")) return by_child();
    if (!strcmp(mode, "thread")) {
        pthread_t t;
        pthread_create(&t, 0, idle, 0);
        pthread_create(&t, 0, busy, 0);
        pthread_create(&t, 0, by_thread, 0);
        pthread_join(t, 0);
    }
    await_go();
    if (!strcmp(mode, "never")) pause();
    if (!strcmp(mode, "busy"))
        for (;;) syscall(SYS_getppid);
    if (!strcmp(mode, "blocked")) {
        sigset_t quiet;
        sigemptyset(&quiet);
        sigaddset(&quiet, SIGURG);
        sigaddset(&quiet, SIGWINCH);
        sigprocmask(SIG_BLOCK, &quiet, 0);
    }
    if (!strcmp(mode, "memory")) {
        int fd = open(command[0], O_RDONLY | O_CLOEXEC);
        char *none[] = {0};
        syscall(SYS_execveat, fd, "", command, none, AT_EMPTY_PATH);
    }
    if (!strcmp(mode, "search")) execvp(command[0], command);
    else execv(command[0], command);
    printf("%s\n", strerror(errno));
    return 0;
}
