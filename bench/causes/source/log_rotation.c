// For cc, not for the go command, which takes a .c file in a package for cgo.

/* Log rotation: the request that fills the log copies it away before it goes on. */
#include "server.h"

enum { MOST = 5 << 20 };
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static int log_fd;
static off_t size;
static char line[4096];

FN static void copy_log(int to)
{
    char block[8192];
    ssize_t n;
    for (off_t at = 0; (n = pread(log_fd, block, sizeof block, at)) > 0; at += n)
        if (write(to, block, (size_t)n) < 0 || ((at >> 13) % 64 == 0 && fsync(to) != 0))
            die("copy");
}

FN static void rotate_log(void)
{
    int to = open("log.1", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    copy_log(to);
    close(to);
    if (ftruncate(log_fd, 0) != 0)
        die("truncate");
    size = 0;
}

FN static void access_log(void)
{
    pthread_mutex_lock(&log_lock);
    ssize_t n = pwrite(log_fd, line, sizeof line, size);
    size += n > 0 ? n : 0;
    if (size >= MOST)
        rotate_log();
    pthread_mutex_unlock(&log_lock);
}

FN static void serve_file(struct request *r)
{
    parse_request(r);
    access_log();
    access_log();
    render_reply(r); /* not the log last: the compiler would leave this function first */
}

int main(int argc, char **argv)
{
    log_fd = open("log", O_RDWR | O_CREAT | O_TRUNC, 0600);
    return serve(argc, argv, &(struct server){.handle = serve_file, .threads = 1, .pause_us = 200, .slow_ms = 4});
}
