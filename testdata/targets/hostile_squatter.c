/*
 * hostile_squatter: a process that takes the names by which its recorder could be
 * asked, before there is one: in the abstract namespace, and in folders that anybody
 * can write to. Whoever connects is kept waiting. The last line holds how many came.
 */
#define _GNU_SOURCE
#include "hostile.h"
#include <pthread.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

static _Atomic int came;

static void *serve(void *arg)
{
    int s = (int)(intptr_t)arg;
    for (;;)
        if (accept(s, NULL, NULL) >= 0)
            came++;
    return NULL;
}

static void take(const char *name, int abstract)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t n = strlen(name);
    memcpy(a.sun_path + abstract, name, n);
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pthread_t t;
    if (s >= 0 && bind(s, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)abstract + n)) == 0 &&
        listen(s, 8) == 0)
        CHECK(pthread_create(&t, NULL, serve, (void *)(intptr_t)s) == 0);
}

int main(void)
{
    static const char *const folders[] = {"/tmp/callreel", "/run/callreel", "/var/tmp/callreel", "/tmp", "/dev/shm"};
    char name[100];
    snprintf(name, sizeof name, "callreel-%d", getpid());
    take(name, 1);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        if (i < 3)
            mkdir(folders[i], 0777);
        snprintf(name, sizeof name, "%s/callreel-%d", folders[i], getpid());
        take(name, 0);
        snprintf(name, sizeof name, "%s/%d", folders[i], getpid());
        take(name, 0);
    }
    target_ready();
    uint64_t sum = 0;
    for (uint64_t i = 0; !target_told_to_stop(); i++)
        sum += hostile_work(i), sleep_us(100);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(name, sizeof name, "%s/callreel-%d", folders[i], getpid());
        unlink(name);
        snprintf(name, sizeof name, "%s/%d", folders[i], getpid());
        unlink(name);
        if (i < 3)
            rmdir(folders[i]); /* if it was ours, and is empty */
    }
    printf("squatter came=%d sum=%lu ok\n", came, (unsigned long)(sum & 0xff));
    return 0;
}
