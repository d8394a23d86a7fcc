// For cc, not for the go command, which takes a .c file in a package for cgo.

/* Throttled by its cgroup: once the quota of a period is used up, every thread stands until the next period. */
#include "server.h"
#include <sys/stat.h>

static char group[128];

static int put(const char *dir, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_WRONLY);
    ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));
    if (fd >= 0)
        close(fd);
    return n > 0 ? 0 : -1;
}

/* A group of the second version of cgroups, or of the first. */
static void limit_cpu(void)
{
    char pid[16];
    snprintf(pid, sizeof pid, "%d", getpid());
    snprintf(group, sizeof group, "/sys/fs/cgroup/cpu/planted-%s", pid);
    if (mkdir(group, 0755) == 0 && put(group, "cpu.cfs_period_us", "100000") == 0 && put(group, "cpu.cfs_quota_us", "100000") == 0 &&
        put(group, "cgroup.procs", pid) == 0)
        return;
    rmdir(group);
    snprintf(group, sizeof group, "/sys/fs/cgroup/planted-%s", pid);
    put("/sys/fs/cgroup", "cgroup.subtree_control", "+cpu");
    if (mkdir(group, 0755) == 0 && put(group, "cpu.max", "100000 100000") == 0 && put(group, "cgroup.procs", pid) == 0)
        return;
    fprintf(stderr, "cgroups can't be written here\n");
    exit(77);
}

static int ended[2];

static void remove_group(void)
{
    char end;
    close(ended[1]);
    if (read(ended[0], group, sizeof group) > 0 && read(ended[0], &end, 1) == 0)
        for (int i = 0; i < 100 && rmdir(group) != 0; i++)
            sleep_us(20000);
    _exit(0);
}

/* Uses up what the group may use, now and then. */
FN static void run_batch(void)
{
    static unsigned char data[512];
    for (uint64_t end = now_ns() + 60000000; now_ns() < end && serving;)
        data[0] ^= (unsigned char)mix(data, sizeof data, 100);
}

static void batches(void)
{
    for (; serving; pause_ms(350))
        run_batch();
}

FN static void price_item(struct request *r, unsigned i) { put_field(r, i, mix(r->text, 200, 500)); }

FN static void quote_prices(struct request *r)
{
    parse_request(r);
    for (unsigned i = 0; i < 10; i++)
        price_item(r, i);
    render_reply(r);
}

int main(int argc, char **argv)
{
    /* A group can be removed once it is empty: by a child outside of it. */
    if (pipe(ended) != 0)
        die("pipe");
    if (fork() == 0) {
        close(1);
        remove_group();
    }
    close(ended[0]);
    limit_cpu();
    if (write(ended[1], group, sizeof group) < 0)
        die("pipe");
    the_server.end = now_ns() + 60000000000u; /* until serve says */
    background("batch", batches);
    background("batch", batches);
    return serve(argc, argv, &(struct server){.handle = quote_prices, .threads = 1, .pause_us = 700, .slow_ms = 12});
}
