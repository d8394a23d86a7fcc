/*
 * overflow MODE: prints "ready" and waits for a line on stdin
 *
 *   deep N   N calls deep
 *   handler  in the handler of the fault of a recursion that has overflowed the stack
 */
#include "target.h"

#include <signal.h>
#include <string.h>

static _Alignas(16) char alternate[1 << 16];
volatile long sink;

TRACED void on_fault(int number)
{
    sink += number;
    target_ready();
    target_wait_line();
    puts("overflow done=1 ok");
    fflush(stdout);
    _exit(0);
}

TRACED long deeper(long n)
{
    if (n == 0) {
        on_fault(0);
        return sink;
    }
    long r = deeper(n - 1);
    sink += r;
    return r + 1;
}

/* Its frame is larger than a page and written from below. */
TRACED long endless(long n)
{
    volatile char piece[5000];
    piece[0] = (char)n;
    if (n < 0)
        return sink;
    long r = endless(n + 1) + piece[0];
    sink += r;
    return r + 1;
}

int main(int argc, char **argv)
{
    CHECK(argc >= 2);
    if (!strcmp(argv[1], "deep")) {
        CHECK(argc == 3);
        return (int)deeper(atol(argv[2])) == 0;
    }
    stack_t s = {.ss_sp = alternate, .ss_size = sizeof alternate};
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_handler = on_fault;
    a.sa_flags = SA_ONSTACK;
    CHECK(sigaltstack(&s, NULL) == 0 && sigaction(SIGSEGV, &a, NULL) == 0);
    return (int)endless(0) == 0;
}
