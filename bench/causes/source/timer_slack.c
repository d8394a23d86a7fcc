// For cc, not for the go command, which takes a .c file in a package for cgo.

/* Timers put together: the timer slack of the thread has been raised to save power, and each short pause becomes a long one. */
#include "server.h"

static volatile int tid;

static void set_slack(const char *ns)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/timerslack_ns", tid);
    int fd = open(path, O_WRONLY);
    if ((fd < 0 || write(fd, ns, strlen(ns)) < 0) && serving) /* else its thread is over */
        die(path);
    close(fd);
}

static void power_saver(void)
{
    while (serving) {
        pause_ms(250);
        if (tid != 0)
            set_slack("60000000");
        pause_ms(40);
        if (tid != 0)
            set_slack("50000");
    }
}

FN static void pace(void) { sleep_us(150); }

FN static void send_chunk(struct request *r, unsigned i)
{
    put_field(r, i, mix(r->text, 100, 3));
    pace();
}

FN static void stream_video(struct request *r)
{
    tid = (int)syscall(SYS_gettid);
    parse_request(r);
    for (unsigned i = 0; i < 8; i++)
        send_chunk(r, i);
    render_reply(r);
}

int main(int argc, char **argv)
{
    background("power", power_saver);
    return serve(argc, argv, &(struct server){.handle = stream_video, .threads = 1, .slow_ms = 10});
}
