// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A lock by try and yield: who finds it taken gives way, and tries again, while the holder counts its stock. */
#include "server.h"

static int taken;

FN static int try_lock(void) { return __atomic_exchange_n(&taken, 1, __ATOMIC_ACQUIRE) == 0; }

FN static void lock_stock(void)
{
    while (!try_lock())
        sched_yield();
}

FN static void unlock_stock(void) { __atomic_store_n(&taken, 0, __ATOMIC_RELEASE); }

FN static void take_inventory(void)
{
    for (unsigned i = 0; i < 30; i++)
        mix(&i, sizeof i, 900);
}

static void clerk(void)
{
    while (serving) {
        pause_ms(300);
        lock_stock();
        take_inventory();
        unlock_stock();
    }
}

FN static void reserve_item(struct request *r)
{
    parse_request(r);
    lock_stock();
    mix(r->text, 100, 4);
    unlock_stock();
    render_reply(r);
}

int main(int argc, char **argv)
{
    background("clerk", clerk);
    return serve(argc, argv, &(struct server){.handle = reserve_item, .slow_ms = 6});
}
