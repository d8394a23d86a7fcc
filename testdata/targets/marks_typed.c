/*
 * marks_typed ROUNDS: passes markers with arguments of all kinds of types that
 * debug information tells of: enums, truth values, characters, pointers. What
 * each is follows from the round. It starts when a line comes on stdin.
 */
#include "marks.h"
#include "target.h"
#include <stdbool.h>

enum color { RED, GREEN = 5, BLUE = -2 };
typedef enum { CLOSED, OPENED = 7 } door_t;
struct job {
    int number;
};

static const enum color colors[] = {RED, GREEN, BLUE};
static struct job jobs[3];
enum color last_color;

/* Arguments as sdt.h gives them: wherever the compiler has them. */
#define PASS(name, template, ...) __asm__ volatile(MARK(MARK_NOP, "typed", name, "0", template) __VA_ARGS__)

TRACED void scalar(enum color color, door_t door, bool on, unsigned char byte, short small)
{
    PASS("scalar", "-4@%[a] 4@%[b] 4@%[c] 4@%[d] -4@%[e]",
         ::[a] "nor"(color), [b] "nor"(door), [c] "nor"((int)on), [d] "nor"((int)byte), [e] "nor"((int)small));
}

TRACED void pointer(struct job *job, const char *name, unsigned long count)
{
    PASS("pointer", "8@%[a] 8@%[b] 8@%[c]", ::[a] "nor"(job), [b] "nor"(name), [c] "nor"(count));
}

static inline __attribute__((always_inline)) void inner(enum color inlined)
{
    PASS("inlined", "-4@%[a]", ::[a] "nor"(inlined));
}

TRACED void outer(unsigned long i)
{
    enum color mine = colors[i % 3];
    inner(mine);
    last_color = mine;
#ifdef __x86_64__
    PASS("global", "-4@last_color(%%rip)", ::"r"(i));
#else
    PASS("global", "-4@[%[a]]", ::[a] "r"(&last_color), "r"(i));
#endif
    volatile door_t local = i % 2 ? OPENED : CLOSED;
    PASS("local", "4@%[a]", ::[a] "m"(local));
}

int main(int argc, char **argv)
{
    unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;
    target_ready();
    target_wait_line();
    for (unsigned long i = 0; i < rounds; i++) {
        scalar(colors[i % 3], i % 2 ? OPENED : CLOSED, i % 2, i, -(short)i);
        pointer(&jobs[i % 3], "a name", i);
        outer(i);
    }
    printf("counted rounds=%lu\n", rounds);
    fflush(stdout);
    target_wait_line();
    printf("marks_typed rounds=%lu ok\n", rounds);
    return 0;
}
