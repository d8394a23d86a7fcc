/*
 * seccomp strict|kill|errno|allow: a process under seccomp, which callreel must
 * not get killed.
 *
 *   strict  mode 1: read, write, exit and sigreturn only
 *   kill    a filter that kills the process on mmap, memfd_create and mprotect
 *   errno   a filter that lets those fail with EPERM
 *   allow   a filter that lets everything pass
 */
#define _GNU_SOURCE
#include "target.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

TRACED uint64_t leaf(uint64_t x)
{
    return x * 3 + 1;
}

static void install(uint32_t verdict)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, verdict),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "kill";
    static const char ready[] = "ready\n", done[] = "seccomp ok=1 ok\n";
    uint64_t x = 1;

    if (strcmp(mode, "strict") == 0)
        CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
    else if (strcmp(mode, "errno") == 0)
        install(SECCOMP_RET_ERRNO | 1);
    else if (strcmp(mode, "allow") == 0)
        install(SECCOMP_RET_ALLOW);
    else
        install(SECCOMP_RET_KILL_PROCESS);

    /* No stdio from here on: it allocates, and strict mode has only read and
     * write, so the end of stdin is waited for instead of polled. */
    if (write(1, ready, sizeof ready - 1) < 0)
        return 1;
    char c;
    do {
        for (int i = 0; i < 1000; i++) {
            uint64_t y = leaf(x);
            if (y != x * 3 + 1)
                syscall(SYS_exit, 1);
            x = y;
        }
    } while (read(0, &c, 1) > 0);
    if (write(1, done, sizeof done - 1) < 0)
        x = 0;
    syscall(SYS_exit, x == 0);
    return 1;
}
