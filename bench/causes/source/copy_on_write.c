// For cc, not for the go command, which takes a .c file in a package for cgo.

/* Copy on write: a snapshot was forked, and each page that a request writes to is copied first. */
#include "server.h"
#include <sys/mman.h>
#include <sys/wait.h>

enum { PAGES = 30000, WRITES = 6000 };
static unsigned char *store;

FN static void add_to_counter(unsigned page) { store[page * 4096ul]++; }

FN static void update_counters(struct request *r)
{
    unsigned from = (unsigned)(draw(&r->seed) % (PAGES - WRITES));
    for (unsigned i = 0; i < WRITES; i++)
        add_to_counter(from + i);
}

FN static void save_snapshot(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        sleep_us(120000);
        _exit(0);
    }
    if (pid > 0)
        waitpid(pid, NULL, 0);
}

static void snapshots(void)
{
    for (; serving; pause_ms(400))
        save_snapshot();
}

FN static void ingest_batch(struct request *r)
{
    parse_request(r);
    update_counters(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    store = mmap(NULL, PAGES * 4096ul, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (store == MAP_FAILED)
        die("mmap");
    madvise(store, PAGES * 4096ul, MADV_NOHUGEPAGE);
    for (unsigned i = 0; i < PAGES; i++)
        add_to_counter(i);
    background("snapshots", snapshots);
    return serve(argc, argv, &(struct server){.handle = ingest_batch, .threads = 1, .pause_us = 1500, .slow_ms = 5});
}
