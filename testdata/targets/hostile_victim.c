/*
 * hostile_victim: a process that nobody has asked to record. It calls what is
 * recorded elsewhere, and ends at the end of its stdin.
 */
#define _GNU_SOURCE
#include "hostile.h"

int main(void)
{
    uint64_t sum = 0;
    target_ready();
    for (uint64_t i = 0; !target_told_to_stop(); i++) {
        sum += hostile_work(i);
        sleep_us(100);
    }
    printf("victim sum=%lu ok\n", (unsigned long)(sum & 0xff));
    return 0;
}
