// For cc, not for the go command, which takes a .c file in a package for cgo.

/* Two causes in one call: it waits for a lock that a backup holds, and then has a large image to scale, which takes less. */
#include "server.h"

static pthread_mutex_t album_lock = PTHREAD_MUTEX_INITIALIZER;
static int _Atomic backup_due, backup_on;

FN static void copy_album(void)
{
    static char block[512];
    for (unsigned i = 0; i < 40; i++)
        mix(block, sizeof block, 1000);
}

static void backups(void)
{
    for (; serving; pause_ms(1)) {
        if (!backup_due)
            continue;
        backup_due = 0;
        pthread_mutex_lock(&album_lock);
        backup_on = 1;
        copy_album();
        pthread_mutex_unlock(&album_lock);
    }
}

FN static unsigned open_album(struct request *r)
{
    pthread_mutex_lock(&album_lock);
    unsigned v = r->id;
    pthread_mutex_unlock(&album_lock);
    return v;
}

FN static void scale_image(unsigned rows)
{
    static char block[512];
    for (unsigned i = 0; i < rows; i++)
        mix(block, sizeof block, 40);
}

FN static void show_album(struct request *r)
{
    parse_request(r);
    if (r->odd) {
        backup_on = 0;
        backup_due = 1;
        while (!backup_on && serving)
            sleep_us(100);
    }
    open_album(r);
    scale_image(r->odd ? 500 : 4 + (unsigned)(uniform(&r->seed) * 4));
    render_reply(r);
}

int main(int argc, char **argv)
{
    background("backup", backups);
    return serve(argc, argv, &(struct server){.handle = show_album, .every_ms = 300, .slow_ms = 12});
}
