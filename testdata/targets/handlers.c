/*
 * handlers MODE: prints "ready" and waits for a line on stdin deep inside of
 *
 *   handler    a signal handler on the thread's own stack
 *   altstack   a handler of a fault, on an alternate stack
 *   nested     a handler on the alternate stack that has interrupted another handler
 *   null       a handler of the fault of a call to address 0
 *   coroutine  a function on a stack of its own (swapcontext; not with musl)
 *   threads    three threads besides the main one, each at another depth
 *   vfork      a child that shares its parent's memory: the parent cannot be stopped
 */
#define _GNU_SOURCE
#include "target.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#ifdef __GLIBC__
#include <ucontext.h>
#endif

static _Alignas(16) char alternate[1 << 16];
volatile int zero;
volatile uint64_t sink;

TRACED void wait_here(void)
{
    target_ready();
    target_wait_line();
    puts("handlers done=1 ok");
    fflush(stdout);
    _exit(0);
}

TRACED void on_signal(int number)
{
    sink += number;
    wait_here();
    sink++;
}

TRACED void on_signal_again(int number)
{
    sink += number;
    raise(SIGUSR2);
    sink++;
}

static void handle(int number, void (*handler)(int), int flags)
{
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_handler = handler;
    a.sa_flags = flags;
    CHECK(sigaction(number, &a, NULL) == 0);
}

TRACED void fault(volatile int *p) { *p = 7; }

TRACED void call(void (*f)(void))
{
    f();
    sink++;
}

TRACED void wait_in_child(void)
{
    pid_t child = vfork();
    CHECK(child >= 0);
    if (child == 0) {
        target_ready();
        target_wait_line();
        _exit(0);
    }
    puts("handlers done=1 ok");
    fflush(stdout);
    _exit(0);
}

TRACED void act(const char *mode)
{
    if (!strcmp(mode, "vfork"))
        wait_in_child();
    if (!strcmp(mode, "altstack"))
        fault((volatile int *)(uintptr_t)zero);
    else if (!strcmp(mode, "null"))
        call((void (*)(void))(uintptr_t)zero);
    else
        raise(SIGUSR1);
    sink++;
}

TRACED void deeper(const char *mode, int n)
{
    if (n)
        deeper(mode, n - 1);
    else
        act(mode);
    sink++;
}

#ifdef __GLIBC__
static ucontext_t outside, inside;

TRACED void coroutine_deeper(int n)
{
    if (n)
        coroutine_deeper(n - 1);
    else
        wait_here();
    sink++;
}

static void coroutine(void)
{
    coroutine_deeper(5);
    sink++;
}

TRACED void run_coroutine(void)
{
    const size_t size = 1 << 16;
    CHECK(getcontext(&inside) == 0);
    inside.uc_stack.ss_sp = malloc(size);
    inside.uc_stack.ss_size = size;
    inside.uc_link = &outside;
    makecontext(&inside, coroutine, 0);
    CHECK(swapcontext(&outside, &inside) == 0);
}
#endif

static pthread_barrier_t barrier;

TRACED uint64_t thread_deeper(int n)
{
    if (n == 0) {
        pthread_barrier_wait(&barrier);
        for (;;)
            pause();
    }
    return thread_deeper(n - 1) + 1;
}

static void *thread(void *depth)
{
    sink += thread_deeper((int)(intptr_t)depth);
    return NULL;
}

static void run_threads(void)
{
    pthread_t id;
    CHECK(pthread_barrier_init(&barrier, NULL, 4) == 0);
    for (intptr_t depth = 1; depth <= 3; depth++)
        CHECK(pthread_create(&id, NULL, thread, (void *)(depth * 7)) == 0);
    pthread_barrier_wait(&barrier);
    wait_here();
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "handler";
    stack_t alt = {.ss_sp = alternate, .ss_size = sizeof alternate};
    CHECK(sigaltstack(&alt, NULL) == 0);
    handle(SIGUSR1, on_signal, 0);
    handle(SIGSEGV, on_signal, SA_ONSTACK);
    if (!strcmp(mode, "nested")) {
        handle(SIGUSR1, on_signal_again, 0);
        handle(SIGUSR2, on_signal, SA_ONSTACK);
    }
    if (!strcmp(mode, "threads"))
        run_threads();
#ifdef __GLIBC__
    if (!strcmp(mode, "coroutine"))
        run_coroutine();
#endif
    deeper(mode, 3);
    return 1;
}
