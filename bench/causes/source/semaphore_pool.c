// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A pool of connections that is empty: an export keeps all of them for long. */
#include "server.h"
#include <semaphore.h>

static sem_t connections;

FN static void take_connection(void)
{
    while (sem_wait(&connections) != 0)
        ;
}

FN static void put_connection(void) { sem_post(&connections); }

FN static void export_chunk(unsigned i)
{
    static char chunk[512];
    mix(chunk, sizeof chunk, 500 + i);
    sleep_us(500);
}

FN static void export_rows(void)
{
    for (int i = 0; i < 2; i++)
        take_connection();
    for (unsigned i = 0; i < 40; i++)
        export_chunk(i);
    for (int i = 0; i < 2; i++)
        put_connection();
}

static void exporter(void)
{
    for (; serving; pause_ms(300))
        export_rows();
}

FN static void query_rows(struct request *r)
{
    take_connection();
    mix(r->text, 200, 30 + (unsigned)(exponential(&r->seed) * 20));
    put_connection();
}

FN static void list_orders(struct request *r)
{
    parse_request(r);
    query_rows(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    sem_init(&connections, 0, 2);
    background("exporter", exporter);
    return serve(argc, argv, &(struct server){.handle = list_orders, .slow_ms = 10});
}
