/*
 * hostile_server SOCKET ro|rw|as: not hostile itself. It takes descriptors from
 * clients, one a connection, maps each whole, as servers of shared memory do
 * (wl_shm, X's MIT-SHM), answers with a byte, and goes on working. It maps them for
 * reading, or for writing too, or, by their names, as a recorder would. They come
 * to low addresses, in the order in which they come. It has code that it has made
 * itself at JIT_AT, two pages, and a page of data behind it, which it holds on to.
 */
#define _GNU_SOURCE
#include "hostile.h"
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#define JIT_AT 0x10000000ul
#define CANARY 0x1122334455667788ul

static int receive(int from)
{
    char byte, space[CMSG_SPACE(sizeof(int))];
    struct iovec v = {&byte, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    int fd;
    CHECK(recvmsg(from, &m, 0) == 1 && CMSG_FIRSTHDR(&m));
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
    return fd;
}

static const char *mode;
static uint64_t next_at = 0x20000000ul;

/* Named as a recorder's, it is mapped as a recorder does. */
static int protection(int fd)
{
    char path[64], name[128] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    CHECK(readlink(path, name, sizeof name - 1) > 0);
    if (!strcmp(mode, "ro") || strstr(name, "callreel-recovery"))
        return !strcmp(mode, "rw") ? PROT_READ | PROT_WRITE : PROT_READ;
    return !strcmp(mode, "as") && strstr(name, "callreel-code") ? PROT_READ | PROT_EXEC : PROT_READ | PROT_WRITE;
}

static void *serve(void *arg)
{
    for (;;) {
        int c = accept((int)(intptr_t)arg, NULL, NULL), fd = receive(c);
        struct stat st;
        CHECK(fstat(fd, &st) == 0);
        void *at = mmap((void *)next_at, (size_t)st.st_size, protection(fd), MAP_SHARED | MAP_NORESERVE, fd, 0);
        if (at == MAP_FAILED) /* sealed against writing */
            at = mmap((void *)next_at, (size_t)st.st_size, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
        CHECK(at != MAP_FAILED);
        next_at = ((uint64_t)at + (uint64_t)st.st_size + 0x1fffff) & ~0x1ffffful;
        close(fd);
        CHECK(write(c, "m", 1) == 1);
        close(c);
    }
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    mode = argv[2];
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof name.sun_path, "%s", argv[1]);
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(s >= 0 && bind(s, (struct sockaddr *)&name, sizeof name) == 0 && listen(s, 8) == 0 && chmod(argv[1], 0777) == 0);
    const int fixed = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    char *jit = mmap((void *)JIT_AT, 0x2000, PROT_READ | PROT_WRITE, fixed, -1, 0);
    uint64_t *canary = mmap((void *)(JIT_AT + 0x2000), 0x1000, PROT_READ | PROT_WRITE, fixed, -1, 0);
    CHECK(jit == (char *)JIT_AT && canary == (void *)(JIT_AT + 0x2000));
    fill_with_returns(jit, 0x2000);
    CHECK(mprotect(jit, 0x2000, PROT_READ | PROT_EXEC) == 0);
    *canary = CANARY;
    pthread_t t;
    CHECK(pthread_create(&t, NULL, serve, (void *)(intptr_t)s) == 0);
    target_ready();
    uint64_t sum = 0;
    for (uint64_t i = 0; !target_told_to_stop(); i++) {
        sum += hostile_work(i), sleep_us(100);
        ((void (*)(void))jit)();
        CHECK(*canary == CANARY);
    }
    printf("server sum=%lu ok\n", (unsigned long)(sum & 0xff));
    fflush(stdout);
    _exit(0);
}
