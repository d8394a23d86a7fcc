/*
 * hostile_truncated LIBRARY once|always: a process with a library of its own, which
 * it truncates: at each line on stdin, or again and again, and writes back.
 */
#define _GNU_SOURCE
#include "hostile.h"
#include <dlfcn.h>

static char content[4 << 20];

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    int fd = open(argv[1], O_RDWR);
    ssize_t n = read(fd, content, sizeof content);
    CHECK(n > 0 && n < (ssize_t)sizeof content);
    CHECK(dlopen(argv[1], RTLD_NOW));
    if (!strcmp(argv[2], "always") && fork_with(0) == 0)
        for (;;) {
            ftruncate(fd, 0);
            sleep_us(500);
            pwrite(fd, content, (size_t)n, 0);
            sleep_us(3000);
        }
    target_ready();
    uint64_t sum = 0;
    for (uint64_t i = 0; !target_told_to_stop(); i++)
        sum += hostile_work(i), sleep_us(100);
    if (!strcmp(argv[2], "once")) {
        target_wait_line();
        CHECK(ftruncate(fd, 0) == 0);
        puts("truncated");
        fflush(stdout);
        while (!target_told_to_stop())
            sum += hostile_work(sum);
    }
    printf("truncated sum=%lu ok\n", (unsigned long)(sum & 0xff));
    fflush(stdout);
    _exit(0); /* the library can't be run any more */
}
