/*
 * flicker: has memory that is called as a recorder's recovery memory is, and
 * takes it away and maps it again without a pause, until its stdin ends.
 */
#define _GNU_SOURCE
#include "target.h"
#include <sys/mman.h>

int main(void)
{
    enum { SIZE = 64 << 10 };
    struct pollfd in = {.fd = 0, .events = POLLIN};
    int fd = memfd_create("callreel-recovery", MFD_CLOEXEC);
    uint64_t times = 0;
    CHECK(fd >= 0 && ftruncate(fd, SIZE) == 0);
    target_ready();
    while (poll(&in, 1, 0) == 0)
        for (int i = 0; i < 64; i++, times++) {
            void *at = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
            CHECK(at != MAP_FAILED);
            for (volatile int k = 0; k < 20000; k++)
                ;
            CHECK(munmap(at, SIZE) == 0);
            for (volatile int k = 0; k < 5000; k++)
                ;
        }
    printf("flicker times=%lu ok\n", times);
    return 0;
}
