// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A bounded queue that is full: the thread that takes from it waits for the disk. */
#include "server.h"

enum { ROOM = 4 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
static unsigned queued;
static int segment;

FN static void flush_segment(void)
{
    static char block[1 << 20];
    for (unsigned i = 0; i < 24; i++)
        if (pwrite(segment, block, sizeof block, (off_t)i << 20) < 0)
            die("segment");
    if (fsync(segment) != 0)
        die("fsync");
}

static void writer(void)
{
    uint64_t next = now_ns() + 100000000u;
    while (serving) {
        pthread_mutex_lock(&lock);
        while (queued == 0)
            pthread_cond_wait(&not_empty, &lock);
        queued--;
        pthread_cond_signal(&not_full);
        pthread_mutex_unlock(&lock);
        if (now_ns() > next) {
            flush_segment();
            next = now_ns() + 350000000u;
        }
    }
}

FN static void enqueue_event(void)
{
    pthread_mutex_lock(&lock);
    while (queued == ROOM)
        pthread_cond_wait(&not_full, &lock);
    queued++;
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&lock);
}

FN static void record_sale(struct request *r)
{
    parse_request(r);
    enqueue_event();
    render_reply(r);
}

int main(int argc, char **argv)
{
    segment = open("segment", O_RDWR | O_CREAT, 0600);
    background("writer", writer);
    return serve(argc, argv, &(struct server){.handle = record_sale, .slow_ms = 6});
}
