/*
 * Stops the thread PID in the ways of others. Orders come from stdin, one a line,
 * and each is answered with the number of frames or words that were read:
 *
 *   seize     traces the thread without stopping it; first of all
 *   least     stop, registers, one read of the stack, on: the least there is
 *   warm      stop, walk by libunwind-ptrace, on; what it knows is kept
 *   cold      the same by one that knows nothing
 *   release   lets go
 *
 * warm and cold are there with -DLIBUNWIND.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#ifdef LIBUNWIND
#include <libunwind-ptrace.h>
#endif

static pid_t pid;
static char stack[1 << 16];

static void fail(const char *what)
{
    printf("%s: %s\n", what, strerror(errno));
    exit(1);
}

/* Waits without giving up the processor: the thread makes no progress meanwhile. */
static void stop(void)
{
    int status;
    pid_t got;
    if (ptrace(PTRACE_INTERRUPT, pid, 0, 0) != 0)
        fail("PTRACE_INTERRUPT");
    while ((got = waitpid(pid, &status, __WALL | WNOHANG)) == 0)
        ;
    if (got != pid || !WIFSTOPPED(status))
        fail("waitpid");
}

static void go_on(void)
{
    if (ptrace(PTRACE_CONT, pid, 0, 0) != 0)
        fail("PTRACE_CONT");
}

static long least(void)
{
    struct user_regs_struct regs;
    stop();
    if (ptrace(PTRACE_GETREGS, pid, 0, &regs) != 0)
        fail("PTRACE_GETREGS");
    struct iovec to = {stack, sizeof stack}, from = {(void *)regs.rsp, sizeof stack};
    ssize_t got = process_vm_readv(pid, &to, 1, &from, 1, 0);
    go_on();
    if (got <= 0)
        fail("process_vm_readv");
    return got / 8;
}

#ifdef LIBUNWIND
static unw_addr_space_t space;
static void *info;

static void begin_unwind(void)
{
    space = unw_create_addr_space(&_UPT_accessors, 0);
    info = _UPT_create(pid);
    if (space == NULL || info == NULL)
        fail("unw_create_addr_space");
    unw_set_caching_policy(space, UNW_CACHE_GLOBAL);
}

static void end_unwind(void)
{
    _UPT_destroy(info);
    unw_destroy_addr_space(space);
    space = NULL;
}

static long walk(void)
{
    unw_cursor_t cursor;
    long frames = 0;
    if (space == NULL)
        begin_unwind();
    stop();
    if (unw_init_remote(&cursor, space, info) == 0)
        do {
            unw_word_t pc;
            unw_get_reg(&cursor, UNW_REG_IP, &pc);
            frames++;
        } while (frames < 1000 && unw_step(&cursor) > 0);
    go_on();
    return frames;
}
#endif

static void obey(const char *order)
{
    long n = 0;
    if (strcmp(order, "seize\n") == 0) {
        if (ptrace(PTRACE_SEIZE, pid, 0, 0) != 0)
            fail("PTRACE_SEIZE");
    } else if (strcmp(order, "least\n") == 0) {
        n = least();
#ifdef LIBUNWIND
    } else if (strcmp(order, "warm\n") == 0) {
        n = walk();
    } else if (strcmp(order, "cold\n") == 0) {
        if (space != NULL)
            end_unwind();
        n = walk();
#endif
    } else if (strcmp(order, "release\n") == 0) {
        stop();
        if (ptrace(PTRACE_DETACH, pid, 0, 0) != 0)
            fail("PTRACE_DETACH");
    } else {
        exit(2);
    }
    printf("%ld\n", n);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    char order[32];
    if (argc != 2)
        return 2;
    pid = atoi(argv[1]);
    memset(stack, 1, sizeof stack); /* what is there before costs the thread nothing */
    while (fgets(order, sizeof order, stdin) != NULL)
        obey(order);
    return 0;
}
