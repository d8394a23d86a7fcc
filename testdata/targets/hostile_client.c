/*
 * hostile_client SOCKET FORGED memfd|ring: sends a server memory that looks like
 * what a recorder has left there, each piece by a connection: a memfd of its own
 * with the bytes of the file FORGED; or all memory that it is being recorded with,
 * which a child takes from it while it stands, after it has written FORGED's records
 * (from RECORDS on) into the true ones if it could, and a copy of these with those
 * records. It says "sent", and goes on working.
 */
#define _GNU_SOURCE
#include "hostile.h"
#include <sys/socket.h>
#include <sys/un.h>

#define RECORDS 0x1000

static char forged[1 << 16];

static void send_descriptor(const char *socket_name, int fd)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof name.sun_path, "%s", socket_name);
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(s >= 0 && connect(s, (struct sockaddr *)&name, sizeof name) == 0);
    char byte = 0, space[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec v = {&byte, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    CHECK(sendmsg(s, &m, 0) == 1);
    CHECK(read(s, &byte, 1) == 1); /* it is mapped */
    close(s);
}

enum { MOST = 8 };
static int stolen[MOST];
static ino_t seen[MOST];
static char *opened[MOST]; /* where it could be mapped for writing */
static int count;

/* Takes what a recorder opens in the parent, for as long as new descriptors come. */
static void steal(pid_t victim, int first)
{
    struct timespec now, last = {0};
    while (count < MOST) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (last.tv_sec && (now.tv_sec - last.tv_sec) * 1000000000 + now.tv_nsec - last.tv_nsec > 300000000)
            break;
        for (int fd = first; fd < first + 6; fd++) {
            char path[64], name[64] = "";
            struct stat st;
            int known = 0;
            snprintf(path, sizeof path, "/proc/%d/fd/%d", victim, fd);
            int own = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
            if (own < 0)
                continue;
            snprintf(path, sizeof path, "/proc/self/fd/%d", own);
            if (readlink(path, name, sizeof name - 1) <= 0 || strncmp(name, "/memfd:callreel", 15) || fstat(own, &st)) {
                close(own);
                continue;
            }
            for (int i = 0; i < count; i++)
                known |= seen[i] == st.st_ino;
            if (known || count == MOST) {
                close(own);
                continue;
            }
            void *at = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0); /* before it is sealed */
            opened[count] = at == MAP_FAILED ? NULL : at;
            seen[count] = st.st_ino;
            stolen[count++] = own;
            last = now;
        }
    }
}

/* A copy of what is there, with other records. */
static int copy_of(int fd, size_t n)
{
    static char page[RECORDS];
    struct stat st;
    int copy = memfd_create("callreel-recovery", 0);
    CHECK(copy >= 0 && fstat(fd, &st) == 0 && ftruncate(copy, st.st_size) == 0);
    CHECK(pread(fd, page, sizeof page, 0) == sizeof page && pwrite(copy, page, sizeof page, 0) == sizeof page);
    CHECK(pwrite(copy, forged + RECORDS, n - RECORDS, RECORDS) == (ssize_t)(n - RECORDS));
    return copy;
}

int main(int argc, char **argv)
{
    CHECK(argc == 4);
    int f = open(argv[2], O_RDONLY);
    ssize_t n = read(f, forged, sizeof forged);
    CHECK(n > RECORDS);
    close(f);
    int first = free_descriptor();
    pid_t self = getpid();
    target_ready();
    if (!strcmp(argv[3], "memfd")) {
        int fd = memfd_create("callreel-recovery", 0);
        CHECK(fd >= 0 && write(fd, forged, (size_t)n) == n);
        send_descriptor(argv[1], fd);
        puts("sent");
        fflush(stdout);
    } else if (fork_with(0) == 0) {
        steal(self, first);
        for (int i = 0; i < count; i++) {
            struct stat st;
            char path[64], name[64] = "";
            snprintf(path, sizeof path, "/proc/self/fd/%d", stolen[i]);
            if (fstat(stolen[i], &st) || st.st_size == 0 || readlink(path, name, sizeof name - 1) < 0)
                continue;
            if (strstr(name, "callreel-recovery")) {
                if (opened[i])
                    memcpy(opened[i] + RECORDS, forged + RECORDS, (size_t)n - RECORDS);
                send_descriptor(argv[1], copy_of(stolen[i], (size_t)n));
            }
            send_descriptor(argv[1], stolen[i]);
        }
        printf("sent %d\n", count);
        fflush(stdout);
        for (;;)
            pause();
    }
    uint64_t sum = 0;
    for (uint64_t i = 0; !target_told_to_stop(); i++)
        sum += hostile_work(i), sleep_us(100);
    printf("client sum=%lu ok\n", (unsigned long)(sum & 0xff));
    return 0;
}
