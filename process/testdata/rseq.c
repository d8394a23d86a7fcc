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
#ifdef __x86_64__
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
#else
        "adrp x8, 9b\n add x8, x8, :lo12:9b\n str x8, [%[area], %[cs]]\n"
        "1: mov w9, #0x200\n lsl w9, w9, #15\n"
        "3: subs w9, w9, #1\n b.ne 3b\n"
        "2: b 5f\n"
        ".inst 0xd428bc00\n"
        "4: b %l[abort]\n"
        "5:\n"
        :
        : [area] "r"(area), [cs] "i"(offsetof(struct rseq, rseq_cs))
        : "x8", "x9", "memory", "cc"
#endif
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
