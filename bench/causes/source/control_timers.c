// For cc, not for the go command, which takes a .c file in a package for cgo.

/* No cause at all: each request sleeps for a time that scatters, as for a peer that answers at random. */
#include "server.h"

FN static void await_sensor(struct request *r) { sleep_us(100 + (unsigned)(exponential(&r->seed) * 300)); }

FN static void poll_sensors(struct request *r)
{
    parse_request(r);
    for (unsigned i = 0; i < 3; i++)
        await_sensor(r);
    render_reply(r);
}

int main(int argc, char **argv) { return serve(argc, argv, &(struct server){.handle = poll_sensors, .threads = 3, .pause_us = 600}); }
