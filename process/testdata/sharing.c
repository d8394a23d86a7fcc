// Makes another process that shares its memory at each line "share" on its standard
// input, one that shares its descriptors at each line "files", and ends that at each line
// "end"; says "ok" to all. Prints "ready" first.
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int sharer(void *arg) {
    (void)arg;
    while (pause()) ;
    return 0;
}

int main(void) {
    enum { size = 1 << 16 };
    char *stack = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED) return 1;
    puts("ready");
    fflush(stdout);
    char line[32];
    int pid = 0;
    while (fgets(line, sizeof line, stdin)) {
        if (!strcmp(line, "share\n")) {
            pid = clone(sharer, stack + size, CLONE_VM | SIGCHLD, 0);
            if (pid < 0) return 2;
        } else if (!strcmp(line, "files\n")) {
            pid = clone(sharer, stack + size, CLONE_FILES | SIGCHLD, 0);
            if (pid < 0) return 2;
        } else if (!strcmp(line, "end\n")) {
            kill(pid, SIGKILL);
            waitpid(pid, 0, 0);
            pid = 0;
        } else {
            break;
        }
        printf("ok %d\n", pid);
        fflush(stdout);
    }
    if (pid) kill(pid, SIGKILL);
    puts("ok");
    return 0;
}
