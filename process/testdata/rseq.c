// Spins in a restartable sequence that writes its result only if it was not
// interrupted. Prints "ready", ends at a line on its standard input.
#define _GNU_SOURCE
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/rseq.h>

static long aborted, passed;

static void sequence(struct rseq *area) {
    asm volatile goto(
        ".pushsection __rseq_cs, \"aw\"\n"
        ".balign 32\n"
        "9: .long 0, 0\n .quad 1f, 2f - 1f, 4f\n"
        ".popsection\n"
        "lea 9b(%%rip), %%rax\n mov %%rax, %c[cs](%[area])\n"
        "1: mov $20000000, %%ecx\n"
        "3: dec %%ecx\n jnz 3b\n"
        "2: jmp 5f\n"
        ".long 0x53053053\n"
        "4: jmp %l[abort]\n"
        "5:\n"
        :
        : [area] "r"(area), [cs] "i"(offsetof(struct rseq, rseq_cs))
        : "rax", "rcx", "memory", "cc"
        : abort);
    passed++;
    return;
abort:
    aborted++;
}

int main(void) {
    if (__rseq_size == 0) return 77;
    struct rseq *area = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
    puts("ready");
    fflush(stdout);
    struct pollfd in = {0, POLLIN, 0};
    while (poll(&in, 1, 0) == 0) sequence(area);
    puts(aborted > 0 ? "ok" : "never aborted");
    return 0;
}
