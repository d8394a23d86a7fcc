// A program whose first thread stands where its first argument says, until a byte comes on standard input. Then it prints "ok".
// Functions to be called are at the end.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
static volatile int slow;

__attribute__((noinline)) void stand(void) {
    if (write(1, "ready\n", 6) != 6) _exit(1);
    struct pollfd p = {0, POLLIN, 0};
    while (poll(&p, 1, -1) != 1) continue;
}

void *malloc(size_t n) {
    if (slow) {
        slow = 0;
        stand();
    }
    return __libc_malloc(n);
}

static void handler(int sig) { (void)sig, stand(); }
static int compare(const void *a, const void *b) {
    static int once;
    if (!once++) stand();
    return *(const int *)a - *(const int *)b;
}
static int each(struct dl_phdr_info *i, size_t n, void *p) { return (void)i, (void)n, (void)p, stand(), 1; }
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *unlocks(void *p) { return stand(), pthread_mutex_unlock(&mutex), p; }
static void *stands(void *p) { return stand(), p; }
static void done(void) {
    stand();
    puts("ok");
    fflush(stdout);
}

__attribute__((noinline)) void spins(void) {
    if (write(1, "ready\n", 6) != 6) _exit(1);
    struct pollfd p = {0, POLLIN, 0};
    static volatile double sum;
    do {
        double d = 0;
        for (int i = 1; i < 5000000; i++) d += 1.0 / i;
        if (sum == 0) sum = d;
        if (sum != d) puts("wrong sum");
    } while (poll(&p, 1, 0) == 0);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    char line[64];
    pthread_t t;
    int numbers[] = {3, 1, 2};
    if (!strcmp(how, "poll")) stand();
    if (!strcmp(how, "malloc")) slow = 1, free(malloc(10));
    if (!strcmp(how, "stdio")) {
        if (write(1, "ready\n", 6) != 6 || !fgets(line, sizeof line, stdin)) return 1;
    }
    if (!strcmp(how, "signal")) signal(SIGUSR1, handler), raise(SIGUSR1);
    if (!strcmp(how, "atfork")) {
        pthread_atfork(stand, 0, 0);
        pid_t child = fork();
        if (child == 0) _exit(0);
        waitpid(child, 0, 0);
    }
    if (!strcmp(how, "exit")) {
        atexit(done);
        return 0;
    }
    if (!strcmp(how, "dlopen") && !dlopen(argv[2], RTLD_NOW)) return 1;
    if (!strcmp(how, "iterate")) dl_iterate_phdr(each, 0);
    if (!strcmp(how, "once")) {
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        pthread_once(&once, stand);
    }
    if (!strcmp(how, "qsort")) qsort(numbers, 3, sizeof numbers[0], compare);
    if (!strcmp(how, "mutex")) {
        pthread_mutex_lock(&mutex); // and another thread unlocks it
        pthread_create(&t, 0, unlocks, 0);
        pthread_mutex_lock(&mutex);
        pthread_join(t, 0);
    }
    if (!strcmp(how, "threads")) {
        pthread_create(&t, 0, stands, 0);
        stand();
        pthread_join(t, 0);
    }
    if (!strcmp(how, "spin")) spins();
    puts("ok");
    return 0;
}

// What is called.
struct pair { long a, b, c; };
static jmp_buf nowhere;
long eight(int a, long b, short c, unsigned char d, const char *e, long f, long g, const char *h) {
    return a + 10 * b + 100 * c + 1000 * d + 10000 * (long)strlen(e) + 100000 * f + 1000000 * g + 10000000 * (long)strlen(h);
}
double half(double a) { return a / 2; }
float third(float a) { return a / 3; }
const char *greet(const char *who) {
    static char text[64];
    snprintf(text, sizeof text, "hello %s", who);
    return text;
}
__attribute__((noinline, used)) static int hidden(int a) { return a + 1; }
void _exits(void) { _exit(3); }
int negative(void) { return -5; }
unsigned char small(void) { return 200; }
struct pair big(void) { return (struct pair){1, 2, 3}; }
void nothing(void) { nowhere[0] = nowhere[0]; }
int asks(void) {
    char line[64];
    return fgets(line, sizeof line, stdin) ? 7 : 8; // holds stdin's lock until a line comes
}
