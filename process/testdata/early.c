// A library that starts a thread, and waits until it runs, before the program begins.
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int runs;

static void *run(void *arg) {
    pthread_mutex_lock(&lock);
    runs = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    for (;;) pause();
    return arg;
}

__attribute__((constructor)) static void begin(void) {
    pthread_t t;
    pthread_create(&t, 0, run, 0);
    pthread_mutex_lock(&lock);
    while (!runs) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}
