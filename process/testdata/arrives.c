// Prints how it was started and what a new program can rely on; at a line on its standard
// input (or that one's end) "ok" if threads and memory work.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

extern char _start[];

static void *fill(void *arg) {
    memset(arg, 1, 100000);
    return arg;
}

int main(int argc, char **argv) {
    sigset_t mask;
    sigprocmask(SIG_SETMASK, 0, &mask);
    for (int i = 1; i < 32; i++)
        if (sigismember(&mask, i)) printf("signal %d is blocked\n", i);
    printf("arrived %s %d%s%s\n", argc > 1 ? argv[1] : "-", argc, geteuid() != getuid() ? " setuid" : "",
           getauxval(AT_ENTRY) != (unsigned long)_start ? " detoured" : "");
    fflush(stdout);
    char c;
    if (read(0, &c, 1) < 0) return 2;
    pthread_t t;
    char *memory = malloc(100000);
    void *filled;
    if (!memory || pthread_create(&t, 0, fill, memory) || pthread_join(t, &filled)) return 3;
    puts(memory[99999] == 1 && filled == memory ? "ok" : "bad");
    return 0;
}
