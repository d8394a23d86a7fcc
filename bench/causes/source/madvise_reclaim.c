// For cc, not for the go command, which takes a .c file in a package for cgo.

/* Memory given back, as if swapped: the arena of an idle session is dropped by madvise, and its next request faults it in. */
#include "server.h"
#include <sys/mman.h>

enum { PAGES = 20000 };
static unsigned char *arena[2]; /* a busy session's and an idle one's */

FN static void touch_arena(unsigned char *p, unsigned from, unsigned pages)
{
    for (unsigned i = from; i < from + pages; i++)
        p[i * 4096ul]++;
}

FN static void resume_session(struct request *r)
{
    unsigned char *p = arena[r->odd];
    for (unsigned i = 0; i < 20; i++)
        touch_arena(p, i * (PAGES / 20), PAGES / 20);
}

FN static void reclaim(void) { madvise(arena[1], PAGES * 4096ul, MADV_DONTNEED); }

static void reclaimer(void)
{
    for (; serving; pause_ms(250))
        reclaim();
}

FN static void push_event(struct request *r)
{
    parse_request(r);
    resume_session(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    for (int i = 0; i < 2; i++) {
        arena[i] = mmap(NULL, PAGES * 4096ul, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (arena[i] == MAP_FAILED)
            die("mmap");
        madvise(arena[i], PAGES * 4096ul, MADV_NOHUGEPAGE);
        touch_arena(arena[i], 0, PAGES);
    }
    background("reclaimer", reclaimer);
    return serve(argc, argv, &(struct server){.handle = push_event, .threads = 1, .every_ms = 300, .slow_ms = 8});
}
