/*
 * count LEAF NEST: one thread, exactly LEAF calls of leaf from main and NEST
 * calls of nest, each of which calls leaf once. They start when a line comes on
 * stdin, or its end; "counted" is printed when they are all made, and the
 * process stays until stdin ends, so that a recorder can detach from it.
 */
#include "target.h"

TRACED uint64_t leaf(uint64_t x)
{
    return x * 3 + 1;
}

TRACED uint64_t nest(uint64_t x)
{
    return leaf(x ^ 0x55) + 7;
}

int main(int argc, char **argv)
{
    uint64_t leaves = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    uint64_t nests = argc > 2 ? strtoull(argv[2], NULL, 10) : leaves / 10;

    target_ready();
    target_wait_line();
    for (uint64_t i = 0; i < leaves; i++)
        CHECK(leaf(i) == i * 3 + 1);
    for (uint64_t i = 0; i < nests; i++)
        CHECK(nest(i) == (i ^ 0x55) * 3 + 8);
    printf("counted leaf=%llu nest=%llu ok\n", (unsigned long long)(leaves + nests), (unsigned long long)nests);
    fflush(stdout);
    target_wait_line();
    printf("calls leaf=%llu nest=%llu ok\n", (unsigned long long)(leaves + nests), (unsigned long long)nests);
    return 0;
}
