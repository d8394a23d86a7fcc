// A program with functions to be called from outside. Its only thread waits for a line; then it prints "ok".
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CALLED __attribute__((noinline, used, visibility("default")))

CALLED long eight(int a, long b, short c, unsigned char d, const char *e, long f, long g, const char *h) {
    if ((uintptr_t)__builtin_frame_address(0) % 16) return -1; // stack alignment
    return a + 10 * b + 100 * c + 1000 * d + 10000 * (long)strlen(e) + 100000 * f + 1000000 * g + 10000000 * (long)strlen(h);
}
CALLED double mixed(double a, int n, double b, float c) { return a * n + b / (double)c; }
CALLED double nine(double a, double b, double c, double d, double e, double f, double g, double h, double i) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i;
}
CALLED long double extended(void) { return 1.5L; }
CALLED const char *echo(const char *s) {
    static char text[64];
    snprintf(text, sizeof text, "<%s>", s);
    return text;
}
CALLED void fails(int how) {
    static volatile uintptr_t nowhere = 16;
    if (how == 0) *(volatile int *)nowhere = 1;
    if (how == 1) abort();
    if (how == 2) __builtin_trap();
    if (how == 3) _exit(7);
    if (how == 4) execl("/bin/false", "false", (char *)0);
    if (how == 5) raise(5); // SIGTRAP by itself is none of our business
}
CALLED int naps(int ms) {
    struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
    return nanosleep(&t, 0) + 42;
}
static jmp_buf env;
CALLED void leaves(void) { longjmp(env, 1); }
CALLED int changes(void) { return close(-1); } // errno
CALLED int reads(void) {
    char c;
    return read(0, &c, 1);
}
CALLED void spins(void) {
    for (volatile int i = 0;; i++) continue;
}

int main(int argc, char **argv) {
    puts(setjmp(env) ? "jumped" : "ready");
    fflush(stdout);
    char line[8];
    if (argc > 1) { // a sleep that must take as long as it says
        long ms = atol(argv[1]);
        struct timespec t = {ms / 1000, ms % 1000 * 1000000}, a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        int r = nanosleep(&t, 0);
        clock_gettime(CLOCK_MONOTONIC, &b);
        printf("%d %ld\n", r, (b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000);
        fflush(stdout);
    }
    errno = 4242;
    if (read(0, line, sizeof line) < 0) perror("read");
    if (errno != 4242) printf("errno %d\n", errno);
    puts("ok");
    return 0;
}
