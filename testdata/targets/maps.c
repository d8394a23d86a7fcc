/*
 * maps ADDRESS:SIZE:PERMISSIONS:FD:OFFSET...: maps what it is told to, as
 * /proc/PID/maps writes permissions and with -1 for memory of no file, prints
 * "ready" and ends with its stdin.
 */
#define _GNU_SOURCE
#include "target.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        unsigned long at, size, off;
        char perm[5];
        int fd, prot = 0;
        CHECK(sscanf(argv[i], "%lx:%lx:%4s:%d:%lx", &at, &size, perm, &fd, &off) == 5);
        prot |= perm[0] == 'r' ? PROT_READ : 0;
        prot |= perm[1] == 'w' ? PROT_WRITE : 0;
        prot |= perm[2] == 'x' ? PROT_EXEC : 0;
        int flags = MAP_FIXED_NOREPLACE | (perm[3] == 's' ? MAP_SHARED : MAP_PRIVATE) | (fd < 0 ? MAP_ANONYMOUS : 0);
        if (mmap((void *)at, size, prot, flags, fd, (off_t)off) != (void *)at) {
            fprintf(stderr, "%s: %s\n", argv[i], strerror(errno));
            return 1;
        }
    }
    target_ready();
    while (!target_told_to_stop())
        usleep(10000);
    puts("maps done=1 ok");
    return 0;
}
