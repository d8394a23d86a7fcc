// For cc, not for the go command, which takes a .c file in a package for cgo.

/* Logging under a lock: whoever finds the buffer full writes it to the disk, and holds up everyone who logs. */
#include "server.h"

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char buffer[1 << 16];
static unsigned used, lines;
static int log_fd;

FN static void flush_log(void)
{
    /* To a disk that takes its time. */
    for (uint64_t end = now_ns() + 30000000; now_ns() < end && serving;)
        if (write(log_fd, buffer, sizeof buffer) < 0 || fdatasync(log_fd) != 0)
            die("log");
    used = 0;
}

FN static void log_line(const char *text)
{
    pthread_mutex_lock(&log_lock);
    unsigned n = (unsigned)strlen(text);
    if (used + n > sizeof buffer)
        used = 0;
    memcpy(buffer + used, text, n);
    used += n;
    lines++;
    pthread_mutex_unlock(&log_lock);
}

/* The audit takes the log's lock, and with it everyone's time. */
FN static void audit_log(void)
{
    pthread_mutex_lock(&log_lock);
    flush_log();
    pthread_mutex_unlock(&log_lock);
}

static void auditor(void)
{
    for (; serving; pause_ms(300))
        audit_log();
}

FN static void handle_order(struct request *r)
{
    parse_request(r);
    log_line(r->text);
    render_reply(r);
    log_line(r->reply);
}

int main(int argc, char **argv)
{
    log_fd = open("log", O_RDWR | O_CREAT | O_TRUNC, 0600);
    background("auditor", auditor);
    return serve(argc, argv, &(struct server){.handle = handle_order, .slow_ms = 8});
}
