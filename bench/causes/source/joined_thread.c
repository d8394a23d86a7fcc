// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A thread of its own: a rare request makes one, and waits for its end. */
#include "server.h"

FN static void thumbnail_row(unsigned n) { mix(&n, sizeof n, 900); }

static void *make_thumbnail(void *arg)
{
    (void)arg;
    prctl(PR_SET_NAME, "thumbnail");
    for (unsigned i = 0; i < 30; i++)
        thumbnail_row(i);
    return NULL;
}

FN static void run_isolated(void)
{
    pthread_t t;
    if ((errno = pthread_create(&t, NULL, make_thumbnail, NULL)) != 0)
        die("thread");
    pthread_join(t, NULL);
}

FN static void show_picture(struct request *r)
{
    parse_request(r);
    if (r->odd)
        run_isolated();
    render_reply(r);
}

int main(int argc, char **argv) { return serve(argc, argv, &(struct server){.handle = show_picture, .every_ms = 300, .slow_ms = 6}); }
