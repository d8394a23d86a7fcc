// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A straggler: a search is split over four threads, and one of them has a shard that needs compaction first. */
#include "server.h"

enum { SHARDS = 4 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static unsigned round_no, left;
static int compact_first;

FN static void compact_shard(unsigned shard)
{
    static char data[512];
    for (unsigned i = 0; i < 60; i++)
        mix(data, sizeof data, 1000 + shard);
}

FN static void search_shard(unsigned shard, int compact)
{
    static char data[512];
    if (compact)
        compact_shard(shard);
    mix(data, sizeof data, 60 + shard * 5);
}

static void shard_thread(unsigned shard)
{
    unsigned seen = 0;
    pthread_mutex_lock(&lock);
    while (serving) {
        if (seen == round_no) {
            pthread_cond_wait(&work, &lock);
            continue;
        }
        seen = round_no;
        int compact = compact_first && shard == 2;
        pthread_mutex_unlock(&lock);
        search_shard(shard, compact);
        pthread_mutex_lock(&lock);
        if (--left == 0)
            pthread_cond_signal(&done);
    }
    pthread_mutex_unlock(&lock);
}
static void shard0(void) { shard_thread(0); }
static void shard1(void) { shard_thread(1); }
static void shard2(void) { shard_thread(2); }
static void shard3(void) { shard_thread(3); }

FN static void gather_hits(void)
{
    while (left > 0)
        pthread_cond_wait(&done, &lock);
}

FN static void scatter_query(struct request *r)
{
    pthread_mutex_lock(&lock);
    compact_first = r->odd;
    left = SHARDS;
    round_no++;
    pthread_cond_broadcast(&work);
    gather_hits();
    pthread_mutex_unlock(&lock);
}

FN static void search_all(struct request *r)
{
    parse_request(r);
    scatter_query(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    background("shard-0", shard0);
    background("shard-1", shard1);
    background("shard-2", shard2);
    background("shard-3", shard3);
    return serve(argc, argv, &(struct server){.handle = search_all, .threads = 1, .every_ms = 300, .pause_us = 800, .slow_ms = 10});
}
