// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A barrier that a partner reaches late: it has to halve the step for some cells. */
#include "server.h"

static pthread_barrier_t barrier;
static int _Atomic stiff;

FN static void halve_step(unsigned i) { mix(&i, sizeof i, 800); }

FN static void integrate(int hard)
{
    unsigned v = (unsigned)hard;
    mix(&v, sizeof v, 60);
    for (unsigned i = 0; hard && i < 40; i++)
        halve_step(i);
}

static void partner(void)
{
    while (serving) {
        pthread_barrier_wait(&barrier);
        integrate(stiff);
        pthread_barrier_wait(&barrier);
    }
}

FN static void meet(void) { pthread_barrier_wait(&barrier); }

FN static void step_model(struct request *r)
{
    parse_request(r);
    stiff = r->odd;
    meet();
    integrate(0);
    meet();
    render_reply(r);
}

int main(int argc, char **argv)
{
    pthread_barrier_init(&barrier, NULL, 2);
    background("partner", partner);
    return serve(argc, argv, &(struct server){.handle = step_model, .threads = 1, .every_ms = 300, .slow_ms = 8});
}
