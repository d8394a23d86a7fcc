/*
 * pointerless N: two threads call leaf N times each; one of them has no thread
 * pointer, as threads of a program's own making may have none. Begun by a line on
 * stdin.
 */
#define _GNU_SOURCE
#include "target.h"
#include <pthread.h>
#include <sys/syscall.h>

#ifdef __aarch64__
#define PAUSE() __asm__ volatile("yield")

static long set_thread_pointer(long to)
{
    __asm__ volatile("msr tpidr_el0, %0" : : "r"(to) : "memory");
    return 0;
}

static long thread_pointer(void)
{
    long own;
    __asm__ volatile("mrs %0, tpidr_el0" : "=r"(own));
    return own;
}
#else
#include <asm/prctl.h>
#define PAUSE() __builtin_ia32_pause()

static long set_thread_pointer(long to)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_arch_prctl), "D"(ARCH_SET_FS), "S"(to) : "rcx", "r11", "memory");
    return result;
}

static long thread_pointer(void)
{
    long own;
    CHECK(syscall(SYS_arch_prctl, ARCH_GET_FS, &own) == 0);
    return own;
}
#endif

static int go;
static long calls;

TRACED uint64_t leaf(uint64_t x) { return x * 3 + 1; }

static uint64_t work(void)
{
    uint64_t x = 1;
    while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE))
        PAUSE();
    for (long i = 0; i < calls; i++)
        x = leaf(x);
    return x;
}

__attribute__((optimize("no-stack-protector"))) static void *without(void *own)
{
    if (set_thread_pointer(0))
        return NULL;
    uint64_t x = work();
    set_thread_pointer((long)own);
    return (void *)x;
}

static void *start(void *arg)
{
    return without((void *)thread_pointer());
}

int main(int argc, char **argv)
{
    pthread_t thread;
    void *x;
    CHECK(argc == 2 && (calls = atol(argv[1])) > 0);
    CHECK(pthread_create(&thread, NULL, start, NULL) == 0);
    usleep(100000);
    target_ready();
    getchar();
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    uint64_t own = work();
    CHECK(pthread_join(thread, &x) == 0 && (uint64_t)x == own);
    puts("counted");
    fflush(stdout);
    while (!target_told_to_stop())
        usleep(1000);
    puts("pointerless ok");
    return 0;
}
