// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A storm of signals: a profiler that has gone wild interrupts the thread again and again. */
#include "server.h"

static pthread_t victim;
static volatile int known, summing;
static uint32_t samples;

static char stack_copy[512];

FN static void take_sample(void)
{
    for (unsigned i = 0; i < 400; i++)
        for (unsigned k = 0; k < sizeof stack_copy; k++)
            samples = (samples ^ (uint32_t)stack_copy[k]) * 16777619u;
}

FN static void on_signal(int sig)
{
    (void)sig;
    take_sample();
}

static void profiler(void)
{
    while (serving) {
        pause_ms(250);
        while (serving && !summing) /* it begins in the midst of a request */
            sleep_us(50);
        for (uint64_t end = now_ns() + 40000000; known && now_ns() < end && serving;) {
            pthread_kill(victim, SIGUSR1);
            sleep_us(20);
        }
    }
}

FN static void sum_column(struct request *r, unsigned i) { put_field(r, i, mix(r->text, 200, 30)); }

FN static void sum_table(struct request *r)
{
    if (!known && r->thread == 0) {
        victim = pthread_self();
        known = 1;
    }
    parse_request(r);
    summing = 1;
    for (unsigned i = 0; i < 30; i++)
        sum_column(r, i);
    summing = 0;
    render_reply(r);
}

int main(int argc, char **argv)
{
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &a, NULL);
    background("profiler", profiler);
    return serve(argc, argv, &(struct server){.handle = sum_table, .threads = 1, .pause_us = 1000, .slow_ms = 8});
}
