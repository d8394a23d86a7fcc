// Has as many threads as its argument says beside the first, all waiting.
// Prints "ready", and ends at a line on its standard input.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int waiting[2];

static void *idle(void *arg) {
    (void)arg;
    char c;
    return read(waiting[0], &c, 1) < 0 ? (void *)1 : 0;
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 0;
    enum { most = 4096 };
    static pthread_t t[most];
    if (n > most || pipe(waiting)) return 1;
    for (int i = 0; i < n; i++)
        if (pthread_create(&t[i], 0, idle, 0)) return 4;
    usleep(20000);
    puts("ready");
    fflush(stdout);
    char c;
    if (read(0, &c, 1) < 0) return 2;
    close(waiting[1]);
    for (int i = 0; i < n; i++) {
        void *r;
        pthread_join(t[i], &r);
        if (r) return 3;
    }
    puts("ok");
    return 0;
}
