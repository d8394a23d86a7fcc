/*
 * hostile_descriptors MODE FILE: a process whose sibling shares its table of
 * descriptors (clone with CLONE_FILES), but neither memory nor threads, so that
 * it runs on while a recorder has stopped the process and opens descriptors in
 * it. The sibling puts other files in the place of every new one:
 *
 *   path      FILE, opened by O_PATH, which takes no permission on the file
 *   read      FILE, opened for reading
 *   memfd     another memfd, of the same name
 *   truncate  nothing, but keeps a duplicate, and truncates it again and again
 *   punch     … and punches holes over all of it
 *   write     … and writes all over it
 *   map       … and writes all over it through a mapping
 *   seal      nothing, but seals it against writing and changes of its size
 *   thief     as truncate, but by a child with a table of its own, which opens the
 *             descriptors by /proc
 *
 * The last line holds how often it has done that ("swapped").
 */
#define _GNU_SOURCE
#include "hostile.h"

#define ADD_SEALS 1033
#define ALL_SEALS 0x3f /* SEAL, SHRINK, GROW, WRITE, FUTURE_WRITE, EXEC */

struct shared {
    _Atomic uint64_t swapped;
};

static struct shared *shared;
static const char *mode;
static int first, bad = -1;

enum { SPAN = 6, KEPT = 8 };

static int is(const char *name)
{
    return !strcmp(mode, name);
}

static int kept[KEPT], keeping;

static void keep(int fd)
{
    if (keeping == KEPT) {
        close(kept[0]);
        memmove(kept, kept + 1, sizeof kept - sizeof kept[0]);
        keeping--;
    }
    kept[keeping++] = fd;
    shared->swapped++;
}

/* What is done to a duplicate, over and over. */
static void spoil(int fd)
{
    struct stat st;
    static const char junk[1 << 16] = {0x41, 0x42, 0x43};
    if (fstat(fd, &st) || st.st_size == 0)
        return;
    if (is("truncate") || is("thief")) {
        ftruncate(fd, 0);
    } else if (is("punch")) {
        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, st.st_size);
    } else if (is("write")) {
        for (off_t at = 0; at < 4 << 20; at += (off_t)sizeof junk)
            pwrite(fd, junk, sizeof junk, at);
    } else if (is("map")) {
        size_t size = st.st_size < 4 << 20 ? (size_t)st.st_size : 4 << 20;
        char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (at != MAP_FAILED) {
            memset(at, 0xcc, size);
            munmap(at, size);
        }
    }
}

/* A memfd is what the recorder opens; others are the process's own. */
static int is_memfd(int fd)
{
    char path[64], name[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(path, name, sizeof name - 1);
    return n > 7 && !strncmp(name, "/memfd:", 7);
}

static void sibling(void)
{
    for (;;) {
        for (int fd = first; fd < first + SPAN; fd++) {
            if (fcntl(fd, F_GETFD) < 0)
                continue;
            if (bad >= 0) {
                if (is_memfd(fd) && dup2(bad, fd) == fd)
                    shared->swapped++;
            } else if (is("seal")) {
                if (is_memfd(fd) && fcntl(fd, ADD_SEALS, ALL_SEALS) == 0)
                    shared->swapped++;
            } else if (is_memfd(fd)) {
                int copy = fcntl(fd, F_DUPFD, 500);
                if (copy >= 0)
                    keep(copy);
            }
        }
        for (int i = 0; i < keeping; i++)
            spoil(kept[i]);
    }
}

/* The same by a process that shares nothing. */
static void thief(pid_t victim)
{
    for (;;) {
        for (int fd = first; fd < first + SPAN; fd++) {
            char path[64];
            snprintf(path, sizeof path, "/proc/%d/fd/%d", victim, fd);
            int own = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
            if (own < 0)
                continue;
            if (is_memfd(own))
                keep(own);
            else
                close(own);
        }
        for (int i = 0; i < keeping; i++)
            spoil(kept[i]);
    }
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    mode = argv[1];
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    if (is("path"))
        bad = open(argv[2], O_PATH);
    else if (is("read"))
        bad = open(argv[2], O_RDONLY | O_NONBLOCK);
    else if (is("memfd"))
        bad = memfd_create("callreel", 0);
    CHECK(bad >= 0 || !(is("path") || is("read") || is("memfd")));
    first = free_descriptor();
    pid_t self = getpid();
    if (is("thief")) {
        if (fork_with(0) == 0)
            thief(self);
    } else if (fork_with(CLONE_FILES) == 0) {
        sibling();
    }
    target_ready();
    uint64_t sum = 0;
    for (uint64_t i = 0; !target_told_to_stop(); i++) {
        sum += hostile_work(i);
        sleep_us(100); /* the core is for the others */
    }
    printf("hostile swapped=%lu sum=%lu ok\n", (unsigned long)shared->swapped, (unsigned long)(sum & 0xff));
    fflush(stdout);
    return 0;
}
