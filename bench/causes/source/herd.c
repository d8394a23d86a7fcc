// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A thundering herd: whoever opens the gate wakes all that wait, and each checks its ticket under the lock, one after the other. */
#include "server.h"

static pthread_mutex_t hall = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate = PTHREAD_COND_INITIALIZER;
static unsigned opened;

FN static void check_ticket(unsigned n) { mix(&n, sizeof n, 600); }

FN static void pass_gate(unsigned before)
{
    pthread_mutex_lock(&hall);
    while (opened == before)
        pthread_cond_wait(&gate, &hall);
    check_ticket(before);
    pthread_mutex_unlock(&hall);
}

static void visitors(void)
{
    while (serving) {
        unsigned before = __atomic_load_n(&opened, __ATOMIC_RELAXED);
        pass_gate(before);
    }
}

FN static void read_counter(struct request *r)
{
    pthread_mutex_lock(&hall);
    r->seed ^= opened * 2;
    pthread_mutex_unlock(&hall);
}

FN static void enter_hall(struct request *r)
{
    parse_request(r);
    if (r->odd) {
        pthread_mutex_lock(&hall);
        __atomic_store_n(&opened, opened + 1, __ATOMIC_RELAXED);
        pthread_cond_broadcast(&gate);
        pthread_mutex_unlock(&hall);
        sleep_us(100);
    }
    read_counter(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    for (int i = 0; i < 48; i++)
        background("visitor", visitors);
    return serve(argc, argv, &(struct server){.handle = enter_hall, .every_ms = 300, .slow_ms = 3});
}
