// Coroutines on small stacks that lie side by side in the first thread's own stack.
// One runs at a time, in turn; the memory of those that wait holds a pattern down to
// the end of their stacks, which nobody may change. Prints "ready", then runs until
// there is something on its standard input.
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum { count = 8, size = 16384, frame = 4096, filled = 8192 };

static ucontext_t back, contexts[count];
static volatile int current;
static volatile unsigned spin;

// Half of a stack is filled by the coroutine itself, in its frame; the rest below is
// what a chain of signal frames might reach to, and beyond.
static void body(void) {
    volatile unsigned char mine[filled];
    for (;;) {
        int me = current;
        for (int i = 0; i < filled; i++) mine[i] = me + 1;
        for (int i = 0; i < 20000; i++) spin++;
        swapcontext(&contexts[me], &back);
        for (int i = 0; i < filled; i++)
            if (mine[i] != me + 1) {
                puts("a waiting coroutine's stack was changed");
                fflush(stdout);
                _exit(3);
            }
    }
}

int main(void) {
    static char out[64];
    setvbuf(stdout, out, _IOLBF, sizeof out);
    unsigned char stacks[count][size - frame] __attribute__((aligned(64)));
    memset(stacks, 0, sizeof stacks);
    for (int i = 0; i < count; i++) {
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = stacks[i];
        contexts[i].uc_stack.ss_size = sizeof stacks[i];
        contexts[i].uc_link = 0;
        makecontext(&contexts[i], body, 0);
    }
    puts("ready");
    struct pollfd in = {0, POLLIN, 0};
    while (poll(&in, 1, 0) == 0)
        for (current = 0; current < count; current++) swapcontext(&back, &contexts[current]);
    puts("ok");
    return 0;
}
