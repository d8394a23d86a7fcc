/*
 * What hostile targets have in common: they look for what a recorder has put into
 * them, and lie about it. They hold no secret of the recorder's: all of it can be
 * read in its source.
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "target.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>

/* fill_with_returns makes memory code that returns wherever it is called. */
static inline void fill_with_returns(void *at, size_t size)
{
#ifdef __aarch64__
    for (size_t i = 0; i < size / 4; i++)
        ((uint32_t *)at)[i] = 0xd65f03c0;
    __builtin___clear_cache((char *)at, (char *)at + size);
#else
    memset(at, 0xc3, size);
#endif
}

/* One mapping of this process's memory. */
struct region {
    uint64_t start, end, inode;
    char perm[5];
    char path[256];
};

/* Finds the first mapping from an address on that has the path, without what comes behind a blank; 0 if there is none. */
__attribute__((unused)) static int region_after(struct region *r, uint64_t after, const char *path)
{
    FILE *f = fopen("/proc/self/maps", "re");
    char line[8192];
    int found = 0;
    CHECK(f);
    while (!found && fgets(line, sizeof line, f)) {
        r->path[0] = 0;
        if (sscanf(line, "%lx-%lx %4s %*x %*s %lu %255s", &r->start, &r->end, r->perm, &r->inode, r->path) < 4)
            continue;
        found = r->start >= after && !strcmp(r->path, path);
    }
    fclose(f);
    return found;
}

__attribute__((unused)) static int find_region(struct region *r, const char *path)
{
    return region_after(r, 0, path);
}

/* The whole of a mapping that protections may have split. */
__attribute__((unused)) static int find_whole(struct region *r, const char *path)
{
    struct region next;
    if (!find_region(r, path))
        return 0;
    while (region_after(&next, r->end, path) && next.start == r->end && next.inode == r->inode)
        r->end = next.end;
    return 1;
}

__attribute__((unused)) static void sleep_us(long us)
{
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&t, NULL);
}

/* A child that is ended with its parent. flags are clone(2)'s; its memory is its own. */
__attribute__((unused)) static pid_t fork_with(long flags)
{
    pid_t parent = getpid(), pid = (pid_t)syscall(SYS_clone, flags | SIGCHLD, 0L, 0L, 0L, 0L);
    CHECK(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(0);
    }
    return pid;
}

/* The lowest descriptor that is free. */
__attribute__((unused)) static int free_descriptor(void)
{
    int fd = dup(0);
    CHECK(fd >= 0);
    close(fd);
    return fd;
}

/* What is recorded. */
TRACED uint64_t hostile_leaf(uint64_t x)
{
    return x * 0x9e3779b97f4a7c15u + 1;
}

TRACED uint64_t hostile_work(uint64_t x)
{
    for (int i = 0; i < 20; i++)
        x ^= hostile_leaf(x + (uint64_t)i);
    return x;
}

#endif
