// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A starved writer: a report reads under the reader-writer lock for long, and an update waits for it. */
#include "server.h"

static pthread_rwlock_t entries_lock = PTHREAD_RWLOCK_INITIALIZER;
static uint32_t entries[1024];

FN static uint32_t scan_page(unsigned page) { return mix(entries + page % 8 * 128, 512, 700); }

FN static void scan_entries(void)
{
    pthread_rwlock_rdlock(&entries_lock);
    for (unsigned page = 0; page < 80; page++)
        scan_page(page);
    pthread_rwlock_unlock(&entries_lock);
}

static void reports(void)
{
    for (; serving; pause_ms(300))
        scan_entries();
}

FN static void store_entry(struct request *r)
{
    pthread_rwlock_wrlock(&entries_lock);
    entries[r->id % 1024]++;
    pthread_rwlock_unlock(&entries_lock);
}

FN static void put_entry(struct request *r)
{
    parse_request(r);
    store_entry(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    background("reports", reports);
    return serve(argc, argv, &(struct server){.handle = put_entry, .slow_ms = 10});
}
