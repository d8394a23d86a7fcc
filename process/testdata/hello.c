// Prints how it was started, and ends with the code that its argument names, or
// by a signal if that is negative.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int code = argc > 1 ? atoi(argv[1]) : 0;
    printf("hello %d\n", argc);
    fflush(stdout);
    if (code < 0) {
        kill(getpid(), -code);
        pause();
    }
    return code;
}
