// Its first thread is in vfork(2) for as many milliseconds as the first argument says,
// as often as the second says; another one runs. Prints "ready" first, and "ok" at a
// line on its standard input.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static atomic_int done;

static void *run(void *arg) {
    (void)arg;
    while (!done) ;
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 3) return 1;
    long ms = atol(argv[1]);
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    pthread_t thread;
    if (pthread_create(&thread, 0, run, 0)) return 1;
    puts("ready");
    fflush(stdout);
    for (int i = atoi(argv[2]); i > 0; i--) {
        if (vfork() == 0) {
            nanosleep(&t, 0);
            _exit(0);
        }
        while (waitpid(-1, 0, WNOHANG) > 0) ;
    }
    char c;
    if (read(0, &c, 1) < 0) return 2;
    done = 1;
    pthread_join(thread, 0);
    puts("ok");
    return 0;
}
