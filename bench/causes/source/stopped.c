// For cc, not for the go command, which takes a .c file in a package for cgo.

/* The whole process is stopped for a moment, by a signal from outside. */
#include "server.h"

static void stopper(void)
{
    pid_t parent = getppid();
    for (;;) {
        sleep_us(300000);
        kill(parent, SIGSTOP);
        sleep_us(40000);
        kill(parent, SIGCONT);
    }
}

FN static void solve_block(struct request *r) { mix(r->text, 200, 300); }

FN static void solve_puzzle(struct request *r)
{
    parse_request(r);
    for (unsigned i = 0; i < 12; i++)
        solve_block(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    child(stopper);
    return serve(argc, argv, &(struct server){.handle = solve_puzzle, .pause_us = 300, .slow_ms = 30});
}
