// For cc, not for the go command, which takes a .c file in a package for cgo.

/* An eventfd whose writer is busy: the thread that indexes is at its own work before it answers. */
#include "server.h"
#include <sys/eventfd.h>

static int ask, answer[2];
static unsigned _Atomic asked[2];
static const char text[64] = "what is indexed";

FN static void index_page(void) { mix(text, sizeof text, 700); }

FN static void rebuild_index(void)
{
    for (unsigned i = 0; i < 60; i++)
        index_page();
}

static void indexer(void)
{
    uint64_t n, one = 1, next = now_ns() + 100000000u;
    while (serving && read(ask, &n, sizeof n) == sizeof n) {
        if (now_ns() > next) {
            rebuild_index();
            next = now_ns() + 300000000u;
        }
        for (int i = 0; i < 2; i++)
            if (__atomic_exchange_n(&asked[i], 0, __ATOMIC_ACQ_REL)) {
                mix(text, sizeof text, 30);
                if (write(answer[i], &one, sizeof one) < 0)
                    die("eventfd");
            }
    }
}

FN static void await_indexer(unsigned me)
{
    uint64_t n = 1;
    asked[me] = 1;
    if (write(ask, &n, sizeof n) < 0 || read(answer[me], &n, sizeof n) < 0)
        die("eventfd");
}

FN static void add_document(struct request *r)
{
    parse_request(r);
    await_indexer(r->thread);
    render_reply(r);
}

int main(int argc, char **argv)
{
    ask = eventfd(0, 0);
    answer[0] = eventfd(0, 0);
    answer[1] = eventfd(0, 0);
    background("indexer", indexer);
    return serve(argc, argv, &(struct server){.handle = add_document, .slow_ms = 8});
}
