/* Calls the functions of a generated table, over and over, until it is killed. */
#include <stdio.h>
#include <unistd.h>

extern long (*const many[])(long);

int main(void)
{
    volatile long sum = 0;

    puts("ready");
    fflush(stdout);
    for (long round = 0;; round++) {
        for (long i = 0; i < 1000; i++)
            sum += many[(round * 1000 + i) * 7919 % COUNT](i);
        usleep(1000);
    }
}
