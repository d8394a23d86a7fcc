// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A lock on a file: another process, a backup, holds it for long. */
#include "server.h"
#include <sys/file.h>

static int fd[2];

static void backup(void)
{
    int own = open("store.lock", O_RDWR | O_CREAT, 0600);
    for (;;) {
        sleep_us(260000);
        flock(own, LOCK_EX);
        sleep_us(35000);
        flock(own, LOCK_UN);
    }
}

FN static void lock_store(int f)
{
    if (flock(f, LOCK_SH) != 0)
        die("flock");
}

FN static void read_store(struct request *r)
{
    lock_store(fd[r->thread]);
    mix(r->text, 200, 20);
    flock(fd[r->thread], LOCK_UN);
}

FN static void get_mail(struct request *r)
{
    parse_request(r);
    read_store(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    for (int i = 0; i < 2; i++)
        fd[i] = open("store.lock", O_RDWR | O_CREAT, 0600);
    child(backup);
    return serve(argc, argv, &(struct server){.handle = get_mail, .slow_ms = 10});
}
