/*
 * unreadable LIBRARY: a process that a filter kills if it calls
 * process_vm_readv. At a line on stdin it loads the library, prints "loaded 1"
 * when it has called its functions, and goes on calling them. At the next line
 * it unloads it and prints "unloaded 1", and so on.
 */
#define _GNU_SOURCE
#include "target.h"
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static void forbid(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

TRACED int plug_own(int n)
{
    return n + 2;
}

TRACED int named(const char *name)
{
    return name[1];
}

static int next_line(void)
{
    char c;
    while (read(0, &c, 1) == 1)
        if (c == '\n')
            return 1;
    return 0;
}

int main(int argc, char **argv)
{
    unsigned long long calls = 0, loads = 0;
    CHECK(argc == 2);
    forbid();
    target_ready();
    while (next_line()) {
        void *handle = dlopen(argv[1], RTLD_NOW);
        CHECK(handle);
        int (*plug)(const char *, int, int, int, int, int, int);
        *(void **)&plug = dlsym(handle, "plug");
        int (*plug_number)(int);
        *(void **)&plug_number = dlsym(handle, "plug_number");
        CHECK(plug && plug_number);
        loads++;
        for (int n = 0; n < 100 || !target_told_to_stop(); n++, calls++) {
            CHECK(plug("abc", 7, 7, 7, 7, 7, 7) == 'a' + 6 * 7);
            CHECK(plug_number(7) == 8 && plug_own(7) == 9 && named("abc") == 'b');
            usleep(200);
            if (n == 99) {
                printf("loaded %llu\n", loads);
                fflush(stdout);
            }
        }
        if (!next_line())
            break;
        CHECK(dlclose(handle) == 0);
        printf("unloaded %llu\n", loads);
        fflush(stdout);
    }
    printf("unreadable calls=%llu loads=%llu ok\n", calls, loads);
    return 0;
}
