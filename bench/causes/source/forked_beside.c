// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A snapshot: another thread forks, which holds the lock of the address space for as long as its tables are copied. */
#include "server.h"
#include <sys/mman.h>
#include <sys/wait.h>

enum { SIZE = 768 << 20 };

FN static void take_snapshot(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
}

static void snapshots(void)
{
    while (serving) {
        pause_ms(400);
        take_snapshot();
    }
}

FN static void map_segment(void)
{
    char *p = mmap(NULL, 128 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        die("mmap");
    *(volatile char *)p = 1;
    munmap(p, 128 << 10);
}

FN static void append_entry(struct request *r)
{
    parse_request(r);
    for (int i = 0; i < 4; i++)
        map_segment();
    render_reply(r);
}

int main(int argc, char **argv)
{
    char *data = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        die("mmap");
    madvise(data, SIZE, MADV_NOHUGEPAGE);
    memset(data, 1, SIZE);
    background("snapshots", snapshots);
    return serve(argc, argv, &(struct server){.handle = append_entry, .slow_ms = 3});
}
