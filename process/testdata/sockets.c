// Threads that wait in socket calls with timeouts, which the kernel ends with EINTR
// when it stops a thread. Prints "ready"; at a line on its standard input it lets each
// call end and prints what became of it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

enum { size = 4096 };
static char bytes[size];

struct wait {
    const char *name;
    int send, type;
    ssize_t (*call)(int fd);
    int fds[2];
    ssize_t result;
    int error;
    pthread_t thread;
};

static struct iovec iov(void) { return (struct iovec){bytes, size}; }

static ssize_t do_read(int fd) { return read(fd, bytes, size); }
static ssize_t do_readv(int fd) { struct iovec v = iov(); return readv(fd, &v, 1); }
static ssize_t do_recv(int fd) { return recv(fd, bytes, size, 0); }
static ssize_t do_recvmmsg(int fd) {
    struct iovec v = iov();
    struct mmsghdr m = {.msg_hdr = {.msg_iov = &v, .msg_iovlen = 1}};
    return recvmmsg(fd, &m, 1, 0, 0);
}
static ssize_t do_write(int fd) { return write(fd, bytes, size); }
static ssize_t do_writev(int fd) { struct iovec v = iov(); return writev(fd, &v, 1); }
static ssize_t do_send(int fd) { return send(fd, bytes, size, 0); }
static ssize_t do_sendmsg(int fd) {
    struct iovec v = iov();
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    return sendmsg(fd, &m, 0);
}
static ssize_t do_sendmmsg(int fd) {
    struct iovec v = iov();
    struct mmsghdr m = {.msg_hdr = {.msg_iov = &v, .msg_iovlen = 1}};
    return sendmmsg(fd, &m, 1, 0);
}

static struct wait waits[] = {
    {.name = "read", .type = SOCK_STREAM, .call = do_read},
    {.name = "readv", .type = SOCK_STREAM, .call = do_readv},
    {.name = "recv", .type = SOCK_STREAM, .call = do_recv},
    {.name = "recvmmsg", .type = SOCK_DGRAM, .call = do_recvmmsg},
    {.name = "write", .send = 1, .type = SOCK_STREAM, .call = do_write},
    {.name = "writev", .send = 1, .type = SOCK_STREAM, .call = do_writev},
    {.name = "send", .send = 1, .type = SOCK_STREAM, .call = do_send},
    {.name = "sendmsg", .send = 1, .type = SOCK_STREAM, .call = do_sendmsg},
    {.name = "sendmmsg", .send = 1, .type = SOCK_STREAM, .call = do_sendmmsg},
};
enum { count = sizeof waits / sizeof waits[0] };

static void *run(void *arg) {
    struct wait *w = arg;
    errno = 0;
    w->result = w->call(w->fds[0]);
    w->error = errno;
    return 0;
}

int main(void) {
    for (int i = 0; i < count; i++) {
        struct wait *w = &waits[i];
        if (socketpair(AF_UNIX, w->type, 0, w->fds)) return 1;
        struct timeval t = {600, 0};
        if (setsockopt(w->fds[0], SOL_SOCKET, w->send ? SO_SNDTIMEO : SO_RCVTIMEO, &t, sizeof t)) return 1;
        if (w->send)
            while (send(w->fds[0], bytes, size, MSG_DONTWAIT) > 0) ;
        if (pthread_create(&w->thread, 0, run, w)) return 1;
    }
    usleep(50000);
    puts("ready");
    fflush(stdout);
    char c, drain[size];
    if (read(0, &c, 1) < 0) return 2;
    for (int i = 0; i < count; i++) {
        struct wait *w = &waits[i];
        if (!w->send) {
            if (write(w->fds[1], "x", 1) != 1) return 3;
        } else {
            fcntl(w->fds[1], F_SETFL, O_NONBLOCK);
            // Until the call has found room and the other end is empty.
            for (int idle = 0; idle < 20; idle++) {
                while (read(w->fds[1], drain, size) > 0) idle = 0;
                usleep(1000);
            }
        }
        pthread_join(w->thread, 0);
        ssize_t want = !w->send || !strcmp(w->name, "sendmmsg") ? 1 : size;
        if (w->result == want) printf("%s ok\n", w->name);
        else printf("%s returned %zd: %s\n", w->name, w->result, strerror(w->error));
    }
    return 0;
}
