// For cc, not for the go command, which takes a .c file in a package for cgo.

/* Priority inversion: a thread of low priority holds the lock, and one of middle priority keeps it from the processor. */
#include "server.h"

static pthread_mutex_t stats_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t stats[64], archive[1024];
static volatile int compressing;

FN static void count_request(struct request *r)
{
    pthread_mutex_lock(&stats_lock);
    stats[r->id % 64]++;
    pthread_mutex_unlock(&stats_lock);
}

FN static void flush_stats(void)
{
    pthread_mutex_lock(&stats_lock);
    compressing = 1;
    mix(stats, sizeof stats, 3000);
    pthread_mutex_unlock(&stats_lock);
}

static void flusher(void)
{
    struct sched_param p = {0};
    stay_on(0);
    sched_setscheduler(0, SCHED_IDLE, &p);
    for (; serving; pause_ms(350))
        flush_stats();
}

FN static void compress_segment(void)
{
    for (uint64_t end = now_ns() + 45000000; now_ns() < end;)
        archive[0] ^= mix(archive, sizeof archive, 100);
}

static void compressor(void)
{
    stay_on(0);
    for (; serving; sleep_us(500))
        if (compressing) {
            compress_segment();
            compressing = 0;
        }
}

FN static void get_counter(struct request *r)
{
    parse_request(r);
    count_request(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    background("flusher", flusher);
    background("compressor", compressor);
    stay_on(1); /* the requests' threads are made by this one */
    return serve(argc, argv, &(struct server){.handle = get_counter, .slow_ms = 10});
}
