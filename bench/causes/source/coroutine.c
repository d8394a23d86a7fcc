// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A coroutine: a request runs on a stack of its own, and a rare one lays out a large page there. */
#include "server.h"
#include <ucontext.h>

struct task {
    ucontext_t caller, own;
    struct request *r;
    char stack[64 << 10];
};
static struct task tasks[2];

FN static void lay_out(unsigned n) { mix(&n, sizeof n, 300); }

FN static void typeset(struct request *r)
{
    for (unsigned i = 0, n = r->odd ? 60 : 1; i < n; i++)
        lay_out(i);
}

static void run_task(unsigned k)
{
    struct task *t = &tasks[k];
    typeset(t->r);
    swapcontext(&t->own, &t->caller);
}

FN static void resume(struct task *t, unsigned k)
{
    getcontext(&t->own);
    t->own.uc_stack.ss_sp = t->stack;
    t->own.uc_stack.ss_size = sizeof t->stack;
    t->own.uc_link = NULL;
    makecontext(&t->own, (void (*)(void))run_task, 1, k);
    swapcontext(&t->caller, &t->own);
}

FN static void print_page(struct request *r)
{
    struct task *t = &tasks[r->thread];
    t->r = r;
    parse_request(r);
    resume(t, r->thread);
    render_reply(r);
}

int main(int argc, char **argv) { return serve(argc, argv, &(struct server){.handle = print_page, .every_ms = 300, .slow_ms = 4}); }
