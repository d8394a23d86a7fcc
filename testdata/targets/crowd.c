/*
 * crowd MODE THREADS [CALLS]: many threads, each made when the one before has made its calls of counted_call.
 *
 *   stay THREADS CALLS   they stay until stdin ends; "made" is printed when all have made their calls
 *   pthread, prctl, syscall, raw, bad, late THREADS
 *                        each calls, names itself "n-NUMBER" in the way of the mode, calls again and ends. raw is a bare
 *                        system call, bad names itself by an address that can't be read first, late has called nothing
 *                        before
 *   main THREADS         the first thread alone does, and the process ends with it; "called" is printed behind the first call
 *   … THREADS fork       all that in a child
 *   … THREADS gettid, PR_GET_NAME
 *                        where that system call ends the process (seccomp)
 */
#define _GNU_SOURCE
#include "target.h"
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __GLIBC__ /* musl's wrapper leaves the kernel's headers out */
#include <linux/filter.h>
#include <linux/seccomp.h>
#endif

static const char *mode;
static int calls;
static sem_t made, leave;

TRACED uint64_t counted_call(uint64_t x)
{
    return (x << 7 | x >> 57) * 0x9e3779b97f4a7c15u;
}

static void set_name(const char *name)
{
    if (!strcmp(mode, "pthread"))
        pthread_setname_np(pthread_self(), name);
    else if (!strcmp(mode, "syscall"))
        syscall(SYS_prctl, PR_SET_NAME, name, 0, 0, 0);
    else if (!strcmp(mode, "raw")) {
#ifdef __aarch64__
        register long x8 __asm__("x8") = SYS_prctl;
        register long x0 __asm__("x0") = PR_SET_NAME;
        register const char *x1 __asm__("x1") = name;
        __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1) : "memory");
#else
        long rax = SYS_prctl;
        __asm__ volatile("syscall" : "+a"(rax) : "D"((long)PR_SET_NAME), "S"(name) : "rcx", "r11", "memory");
#endif
    } else {
        if (!strcmp(mode, "bad") && prctl(PR_SET_NAME, (char *)8, 0, 0, 0) == 0)
            _exit(3);
        if (prctl(PR_SET_NAME, name, 0, 0, 0) != 0)
            _exit(4);
    }
}

static void *one(void *arg)
{
    uint64_t x = (uint64_t)(uintptr_t)arg;
    if (!strcmp(mode, "stay")) {
        for (int i = 0; i < calls; i++)
            x = counted_call(x);
        sem_post(&made);
        sem_wait(&leave);
        return NULL;
    }
    char name[16];
    snprintf(name, sizeof name, "n-%d", (int)(uintptr_t)arg);
    if (strcmp(mode, "late"))
        x = counted_call(x);
    set_name(name);
    x = counted_call(x);
    sem_post(&made);
    return NULL;
}

/* A filter that kills for one system call, or for one with that first argument. */
static void forbid(uint32_t number, uint32_t argument)
{
#ifdef __GLIBC__
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_gettid, 2, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, argument, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
#else
    CHECK(number == argument && 0);
#endif
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    mode = argv[1];
    int n = atoi(argv[2]);
    calls = argc > 3 ? atoi(argv[3]) : 1;
    sem_init(&made, 0, 0);
    sem_init(&leave, 0, 0);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
    const char *more = argc > 3 ? argv[3] : "";
    if (!strcmp(more, "gettid"))
        forbid(SYS_gettid, 0);
    if (!strcmp(more, "PR_GET_NAME"))
        forbid(SYS_prctl, PR_GET_NAME);
    target_ready();
    getchar();
    if (!strcmp(mode, "main")) {
        uint64_t x = counted_call(n);
        puts("called");
        fflush(stdout);
        getchar();
        set_name("n-main");
        _exit(counted_call(x) == 0);
    }
    pid_t child = !strcmp(more, "fork") ? fork() : 0;
    if (child)
        waitpid(child, NULL, 0);
    for (int i = 0; i < n && !child; i++) {
        pthread_t t;
        if (pthread_create(&t, &small, one, (void *)(uintptr_t)i))
            return 1;
        sem_wait(&made);
    }
    if (!strcmp(more, "fork") && !child)
        _exit(0);
    puts("made");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    return 0;
}
