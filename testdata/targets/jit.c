/*
 * jit MODE: prints "ready" and waits for a line on stdin, called by code that it has made
 * itself and written into /tmp/perf-PID.map:
 *
 *   memory       in memory that no file is behind
 *   memfd        in a file without a name, as .NET makes it
 *   interpreter  returned to at places that follow no call, as in HotSpot's interpreter
 */
#define _GNU_SOURCE
#include "target.h"

#include <string.h>
#include <sys/mman.h>

static void wait_here(void)
{
    target_ready();
    target_wait_line();
}

typedef void made(void (*)(void));

int main(int argc, char **argv)
{
#ifdef __aarch64__
    static const unsigned code[] = {
        0xa9bf7bfd, 0x910003fd, /* stp x29, x30, [sp, #-16]!; mov x29, sp */
        0xd63f0000,             /* blr x0 */
        0xa8c17bfd, 0xd65f03c0, /* ldp x29, x30, [sp], #16; ret */
    };
    static const unsigned interpreter[] = {
        0xa9bf7bfd, 0x910003fd, /* stp x29, x30, [sp, #-16]!; mov x29, sp */
        0x1000005e, 0x14000003, /* adr x30, 1f; b 2f */
        0xa8c17bfd, 0xd65f03c0, /* 1: ldp x29, x30, [sp], #16; ret */
        0xa9bf7bfd, 0x910003fd, /* 2: stp x29, x30, [sp, #-16]!; mov x29, sp */
        0x1000005e, 0xd61f0000, /* adr x30, 3f; br x0 */
        0xa8c17bfd, 0xd65f03c0, /* 3: ldp x29, x30, [sp], #16; ret */
    };
#else
    static const unsigned char code[] = {
        0x55, 0x48, 0x89, 0xe5, /* push %rbp; mov %rsp, %rbp */
        0xff, 0xd7,             /* call *%rdi */
        0x5d, 0xc3,             /* pop %rbp; ret */
    };
    static const unsigned char interpreter[] = {
        0x55, 0x48, 0x89, 0xe5,             /* push %rbp; mov %rsp, %rbp */
        0x48, 0x8d, 0x05, 3, 0, 0, 0, 0x50, /* lea 1f(%rip), %rax; push %rax */
        0xeb, 2,                            /* jmp 2f */
        0x5d, 0xc3,                         /* 1: pop %rbp; ret */
        0x55, 0x48, 0x89, 0xe5,             /* 2: push %rbp; mov %rsp, %rbp */
        0x48, 0x8d, 0x05, 3, 0, 0, 0, 0x50, /* lea 3f(%rip), %rax; push %rax */
        0xff, 0xe7,                         /* jmp *%rdi */
        0x5d, 0xc3,                         /* 3: pop %rbp; ret */
    };
#endif
    const int interprets = argc == 2 && !strcmp(argv[1], "interpreter");
    CHECK(argc == 2);
    int fd = -1, flags = MAP_PRIVATE | MAP_ANONYMOUS;
    if (!strcmp(argv[1], "memfd")) {
        CHECK((fd = memfd_create("doublemapper", 0)) >= 0);
        CHECK(ftruncate(fd, 4096) == 0);
        flags = MAP_SHARED;
    }
    char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, flags, fd, 0);
    CHECK(at != MAP_FAILED);
    memcpy(at + 64, interprets ? (const void *)interpreter : code, interprets ? sizeof interpreter : sizeof code);
    __builtin___clear_cache(at, at + 4096);
    char name[64];
    snprintf(name, sizeof name, "/tmp/perf-%d.map", (int)getpid());
    FILE *map = fopen(name, "w");
    CHECK(map != NULL);
    fprintf(map, "%lx 40 an earlier function\n%lx %zx JS:*made by hand, 1\n", (unsigned long)at, (unsigned long)at + 64, sizeof interpreter);
    CHECK(fclose(map) == 0);
    ((made *)(void *)(at + 64))(wait_here);
    CHECK(remove(name) == 0);
    puts("jit done=1 ok");
    return 0;
}
