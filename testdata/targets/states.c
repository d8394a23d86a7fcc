/*
 * states: threads that each do one thing over and over, until stdin ends: run
 * (computes), sleep (sleeps for 3 ms), lock and lock2 (hold the same mutex for
 * 1 ms of computing), pipe, unix and tcp (read from what another thread writes
 * into every 5 ms), and silent, which sleeps and computes and calls no function
 * that a recorder traces. "tcp PORT" says where the reader's peer is.
 *
 * The last line says how many rounds the threads have made together.
 */
#define _GNU_SOURCE
#include "target.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <time.h>

static atomic_int stop;
static atomic_ulong rounds;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile uint64_t sum;

static void compute_for(long ns)
{
    struct timespec from, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    do {
        for (int i = 0; i < 1000; i++)
            sum += (uint64_t)i * i;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - from.tv_sec) * 1000000000 + now.tv_nsec - from.tv_nsec < ns);
}

static void sleep_for(long ns)
{
    struct timespec t = {.tv_nsec = ns};
    nanosleep(&t, NULL);
}

TRACED void does_run(void) { compute_for(2000000); }

TRACED void does_sleep(void) { sleep_for(3000000); }

TRACED void does_lock(void)
{
    pthread_mutex_lock(&mutex);
    compute_for(1000000);
    pthread_mutex_unlock(&mutex);
}

TRACED int does_read(int fd)
{
    char c;
    return (int)read(fd, &c, 1);
}

TRACED int does_write(int fd)
{
    return (int)write(fd, "x", 1);
}

static void *run(void *arg)
{
    (void)arg;
    while (!stop) {
        does_run();
        rounds++;
    }
    return NULL;
}

static void *sleeper(void *arg)
{
    (void)arg;
    while (!stop) {
        does_sleep();
        rounds++;
    }
    return NULL;
}

static void *locker(void *arg)
{
    (void)arg;
    while (!stop) {
        does_lock();
        sleep_for(200000);
        rounds++;
    }
    return NULL;
}

static void *reader(void *fd)
{
    while (does_read(*(int *)fd) == 1)
        rounds++;
    return NULL;
}

static int writes[3];

static void *writer(void *arg)
{
    (void)arg;
    while (!stop) {
        for (int i = 0; i < 3; i++)
            CHECK(does_write(writes[i]) == 1);
        sleep_for(5000000);
    }
    for (int i = 0; i < 3; i++)
        close(writes[i]);
    return NULL;
}

static void *silent(void *arg)
{
    (void)arg;
    while (!stop) {
        sleep_for(2000000);
        compute_for(500000);
    }
    return NULL;
}

/* A connection over the loopback interface; returns its peer's port. */
static int connected(int ends[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(listening >= 0 && bind(listening, (struct sockaddr *)&at, sizeof at) == 0 && listen(listening, 1) == 0);
    CHECK(getsockname(listening, (struct sockaddr *)&at, &size) == 0);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(ends[0] >= 0 && connect(ends[0], (struct sockaddr *)&at, sizeof at) == 0);
    ends[1] = accept(listening, NULL, NULL);
    CHECK(ends[1] >= 0);
    close(listening);
    return ntohs(at.sin_port);
}

int main(void)
{
    int pipes[2], sockets[2], tcp[2];
    CHECK(pipe(pipes) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    int port = connected(tcp);
    writes[0] = pipes[1], writes[1] = sockets[1], writes[2] = tcp[1];

    struct {
        const char *name;
        void *(*does)(void *);
        void *arg;
    } all[] = {
        {"run", run, NULL}, {"sleep", sleeper, NULL}, {"lock", locker, NULL}, {"lock2", locker, NULL},
        {"pipe", reader, &pipes[0]}, {"unix", reader, &sockets[0]}, {"tcp", reader, &tcp[0]},
        {"write", writer, NULL}, {"silent", silent, NULL},
    };
    enum { N = sizeof all / sizeof all[0] };
    pthread_t threads[N];
    for (int i = 0; i < N; i++) {
        CHECK(pthread_create(&threads[i], NULL, all[i].does, all[i].arg) == 0);
        CHECK(pthread_setname_np(threads[i], all[i].name) == 0);
    }
    printf("tcp %d\n", port);
    target_ready();
    target_wait_line();
    stop = 1;
    for (int i = 0; i < N; i++)
        pthread_join(threads[i], NULL);
    printf("states rounds=%lu ok\n", (unsigned long)rounds);
    return 0;
}
