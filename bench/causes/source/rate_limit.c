// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A limiter of rates that sleeps: now and then a burst of others takes the tokens of the next moments. */
#include "server.h"

static uint64_t _Atomic next_free;

/* Tokens come at a rate; who takes one that isn't there yet sleeps until it is. */
FN static void take_tokens(unsigned n)
{
    uint64_t now = now_ns(), due = next_free, from;
    do {
        from = due > now ? due : now;
    } while (!__atomic_compare_exchange_n((uint64_t *)&next_free, &due, from + n * 5000, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    if (from > now + 50000)
        sleep_us((unsigned)((from - now) / 1000));
}

static void importer(void)
{
    for (; serving; pause_ms(300))
        take_tokens(4000);
}

FN static void send_mail(struct request *r)
{
    parse_request(r);
    take_tokens(1);
    render_reply(r);
}

int main(int argc, char **argv)
{
    background("importer", importer);
    return serve(argc, argv, &(struct server){.handle = send_mail, .slow_ms = 8});
}
