// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A lock convoy: after a pause of all threads each of them wants the journal, and holds it for some milliseconds. */
#include "server.h"

static pthread_mutex_t journal_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int burst;
static char journal[4096];

FN static uint32_t checksum_journal(unsigned units) { return mix(journal, sizeof journal, units); }

FN static void append_journal(struct request *r)
{
    pthread_mutex_lock(&journal_lock);
    memcpy(journal + r->id % 8 * 256, r->text, 256);
    if (burst) {
        /* Written back at once while the queue is long. */
        checksum_journal(3000);
        sleep_us(2000);
    } else
        checksum_journal(5);
    pthread_mutex_unlock(&journal_lock);
}

static void bursts(void)
{
    while (serving) {
        pause_ms(250);
        burst = 1;
        pause_ms(50);
        burst = 0;
    }
}

FN static void post_entry(struct request *r)
{
    parse_request(r);
    append_journal(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    background("ticker", bursts);
    return serve(argc, argv, &(struct server){.handle = post_entry, .threads = 8, .pause_us = 3000, .slow_ms = 15});
}
