// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A spin lock: whoever wants it works hard at waiting while another thread compacts. */
#include "server.h"

static volatile int locked;
static uint32_t heap[512];

FN static void spin_acquire(void)
{
    while (__atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE))
        while (locked)
            __builtin_ia32_pause();
}

FN static void spin_release(void) { __atomic_store_n(&locked, 0, __ATOMIC_RELEASE); }

FN static void move_block(unsigned i) { heap[i % 512] ^= mix(heap, sizeof heap, 600); }

FN static void compact_heap(void)
{
    spin_acquire();
    for (unsigned i = 0; i < 80; i++)
        move_block(i);
    spin_release();
}

static void compactor(void)
{
    stay_on(0);
    for (; serving; pause_ms(300))
        compact_heap();
}

FN static void take_block(struct request *r)
{
    spin_acquire();
    heap[r->id % 512]++;
    spin_release();
}

FN static void allocate_buffer(struct request *r)
{
    parse_request(r);
    take_block(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    background("compactor", compactor);
    stay_on(1);
    return serve(argc, argv, &(struct server){.handle = allocate_buffer, .threads = 1, .slow_ms = 8});
}
