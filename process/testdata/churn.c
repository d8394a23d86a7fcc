// Creates and ends threads without pause. Prints "ready"; at a line on its
// standard input it stops and prints how many threads did their work.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static atomic_int done;
static atomic_long born, worked;

static void *work(void *arg) {
    volatile long sum = 0;
    for (long i = 0; i < 2000; i++) sum += i;
    if (sum == 1999000) atomic_fetch_add((atomic_long *)arg, 1);
    return 0;
}

static void *breed(void *arg) {
    while (!done) {
        pthread_t t[8];
        for (int i = 0; i < 8; i++) {
            if (pthread_create(&t[i], 0, work, arg)) return (void *)1;
            born++;
        }
        for (int i = 0; i < 8; i++) pthread_join(t[i], 0);
    }
    return 0;
}

int main(void) {
    pthread_t t[3];
    for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, breed, &worked);
    puts("ready");
    fflush(stdout);
    char c;
    if (read(0, &c, 1) < 0) return 2;
    done = 1;
    void *bad = 0;
    for (int i = 0; i < 3; i++) {
        void *r;
        pthread_join(t[i], &r);
        if (r) bad = r;
    }
    puts(!bad && born == worked ? "ok" : "threads were lost");
    return bad || born != worked;
}
