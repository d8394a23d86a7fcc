// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A lost wake-up: the signal was sent before the wait began, and only the time-out ends it. */
#include "server.h"

static pthread_mutex_t slot_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t slot_free = PTHREAD_COND_INITIALIZER;
static int free_slots = 2;

FN static void wait_for_slot(unsigned ms)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)ms * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&slot_free, &slot_lock, &until);
}

FN static void acquire_slot(struct request *r)
{
    pthread_mutex_lock(&slot_lock);
    if (r->odd) /* it has looked before it took the lock, and saw none */
        wait_for_slot(40);
    while (free_slots == 0)
        wait_for_slot(40);
    free_slots--;
    pthread_mutex_unlock(&slot_lock);
}

FN static void release_slot(void)
{
    pthread_mutex_lock(&slot_lock);
    free_slots++;
    pthread_mutex_unlock(&slot_lock); /* and signals nobody while nobody waits */
}

FN static void run_query(struct request *r)
{
    parse_request(r);
    acquire_slot(r);
    render_reply(r);
    release_slot();
}

int main(int argc, char **argv) { return serve(argc, argv, &(struct server){.handle = run_query, .every_ms = 300, .slow_ms = 15}); }
