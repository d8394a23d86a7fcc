// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A semaphore of System V, which another process holds while it writes a snapshot. */
#include "server.h"
#include <sys/ipc.h>
#include <sys/sem.h>

static int set;

static void change(short by)
{
    struct sembuf op = {0, by, 0};
    while (semop(set, &op, 1) != 0)
        if (errno != EINTR)
            _exit(1);
}

static void snapshots(void)
{
    for (;;) {
        sleep_us(300000);
        change(-1);
        sleep_us(20000);
        change(1);
    }
}

FN static void lock_segment(void) { change(-1); }
FN static void unlock_segment(void) { change(1); }

FN static void put_tuple(struct request *r)
{
    parse_request(r);
    lock_segment();
    mix(r->text, 100, 4);
    unlock_segment();
    render_reply(r);
}

int main(int argc, char **argv)
{
    set = semget(IPC_PRIVATE, 1, 0600);
    if (set < 0 || semctl(set, 0, SETVAL, 1) != 0)
        die("semget");
    pid_t other = child(snapshots);
    /* It is gone with the last who uses it, but has to be there for the child. */
    (void)other;
    return serve(argc, argv, &(struct server){.handle = put_tuple, .slow_ms = 8});
}
