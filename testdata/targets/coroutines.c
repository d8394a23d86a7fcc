/*
 * Coroutines whose stacks lie side by side in one block of memory.
 *
 *   coroutines SWITCH ORDER STACKS KB TURNS
 *
 * SWITCH is ucontext, or hand: registers are saved and the stack pointer
 * changed as libco and others do it. ORDER is who is next when a coroutine
 * waits: up, the one above; down, the one below; own, the thread's own stack,
 * which chooses the one above. Each takes so many turns and ends; in some of
 * them longjmp leaves two calls.
 */
#include "target.h"

#include <setjmp.h>
#include <string.h>
#include <ucontext.h>

struct coroutine {
    ucontext_t context;
    void *sp;
    int turns;
    jmp_buf caught;
};

static struct coroutine own, *all, *current;
static int stacks, turns, by_hand;
static enum { UP, DOWN, OWN } order;
static uint64_t begun, waited, steps, jumped;
static volatile uint64_t sink;

/* Saves what a callee must keep and the stack pointer, and goes on with another. */
#if defined __x86_64__
enum { saved = 8, entry = 6 }; /* words of what is saved, and which of them is where it goes on */

__attribute__((naked, noipa)) static void switch_by_hand(void **save, void *to)
{
    __asm__("push %rbp\n\tpush %rbx\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n\t"
            "mov %rsp, (%rdi)\n\tmov %rsi, %rsp\n\t"
            "pop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbx\n\tpop %rbp\n\tret");
}
#elif defined __aarch64__
enum { saved = 20, entry = 11 };

void switch_by_hand(void **save, void *to);
__asm__(".text\n\t.p2align 2\n\t.type switch_by_hand, %function\nswitch_by_hand:\n\t"
        "sub sp, sp, #160\n\tstp x19, x20, [sp]\n\tstp x21, x22, [sp, #16]\n\tstp x23, x24, [sp, #32]\n\t"
        "stp x25, x26, [sp, #48]\n\tstp x27, x28, [sp, #64]\n\tstp x29, x30, [sp, #80]\n\t"
        "stp d8, d9, [sp, #96]\n\tstp d10, d11, [sp, #112]\n\tstp d12, d13, [sp, #128]\n\tstp d14, d15, [sp, #144]\n\t"
        "mov x9, sp\n\tstr x9, [x0]\n\tmov sp, x1\n\t"
        "ldp x19, x20, [sp]\n\tldp x21, x22, [sp, #16]\n\tldp x23, x24, [sp, #32]\n\t"
        "ldp x25, x26, [sp, #48]\n\tldp x27, x28, [sp, #64]\n\tldp x29, x30, [sp, #80]\n\t"
        "ldp d8, d9, [sp, #96]\n\tldp d10, d11, [sp, #112]\n\tldp d12, d13, [sp, #128]\n\tldp d14, d15, [sp, #144]\n\t"
        "add sp, sp, #160\n\tret\n\t.size switch_by_hand, .-switch_by_hand");
#endif

/* Goes on with another coroutine, and returns when it is this one's turn again. */
TRACED void wait_for_turn(struct coroutine *to)
{
    struct coroutine *from = current;
    current = to;
    waited++;
    if (by_hand)
        switch_by_hand(&from->sp, to->sp);
    else
        CHECK(swapcontext(&from->context, &to->context) == 0);
    sink++;
}

TRACED void step(int n)
{
    steps++;
    if (n)
        step(n - 1);
    sink++;
}

TRACED void jump_inner(struct coroutine *c)
{
    jumped++;
    longjmp(c->caught, 1);
}

TRACED void jump(struct coroutine *c)
{
    jump_inner(c);
    sink++;
}

/* The next that isn't over, or the thread's own. */
static struct coroutine *next(struct coroutine *c)
{
    if (order == OWN)
        return &own;
    for (int k = 1; k <= stacks; k++) {
        long i = (c - all) + (order == UP ? k : stacks - k);
        if (all[i % stacks].turns < turns)
            return &all[i % stacks];
    }
    return &own;
}

TRACED void take_turns(struct coroutine *c)
{
    begun++;
    while (++c->turns < turns) {
        step(c->turns % 4);
        if (c->turns % 5 == 0 && !setjmp(c->caught))
            jump(c);
        wait_for_turn(next(c));
    }
    step(1);
}

static void coroutine(void)
{
    struct coroutine *c = current;
    take_turns(c);
    struct coroutine *to = next(c);
    current = to; /* for good */
    if (by_hand)
        switch_by_hand(&c->sp, to->sp);
    else
        setcontext(&to->context);
    abort();
}

static void prepare(struct coroutine *c, char *stack, size_t size)
{
    if (by_hand) {
        void **top = (void **)((uintptr_t)(stack + size) & ~(uintptr_t)15);
        top -= saved;
        memset(top, 0, saved * sizeof *top);
        top[entry] = (void *)coroutine;
        c->sp = top;
        return;
    }
    CHECK(getcontext(&c->context) == 0);
    c->context.uc_stack.ss_sp = stack;
    c->context.uc_stack.ss_size = size;
    c->context.uc_link = 0;
    makecontext(&c->context, coroutine, 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 6);
    by_hand = !strcmp(argv[1], "hand");
    order = !strcmp(argv[2], "up") ? UP : !strcmp(argv[2], "down") ? DOWN : OWN;
    stacks = atoi(argv[3]);
    size_t size = (size_t)atoi(argv[4]) << 10;
    turns = atoi(argv[5]);
    char *memory = malloc(stacks * size);
    all = calloc(stacks, sizeof *all);
    CHECK(memory && all && stacks > 0 && turns > 1);
    for (int i = 0; i < stacks; i++)
        prepare(&all[i], memory + i * size, size);
    current = &own;
    for (int round = 0; round < turns; round++)
        for (int i = 0; i < stacks; i++)
            if (all[i].turns < turns) {
                step(0);
                wait_for_turn(&all[i]);
            }
    printf("coroutines take_turns=%lu wait_for_turn=%lu step=%lu jump=%lu jump_inner=%lu ok\n", begun, waited, steps, jumped, jumped);
    return 0;
}
