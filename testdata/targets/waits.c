// Threads that wait for others by all that C libraries have for that. Each waits in a thread called "w-KIND" and is let go on by "e-KIND",
// which does so some milliseconds later; "w-accept" is let go on by "e-accept", and so on. It prints what each waits for: an address, or
// a descriptor. With "hot" as an argument other threads lock and unlock at the same time as fast as they can.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void nap(int us) { struct timespec t = {0, us * 1000L}; nanosleep(&t, 0); }
static void name(const char *before, const char *kind)
{
	char n[16];
	snprintf(n, sizeof n, "%s-%s", before, kind);
	pthread_setname_np(pthread_self(), n);
}

#define TRACED __attribute__((noinline, noclone))
TRACED void holds_mutex(pthread_mutex_t *m) { pthread_mutex_lock(m); nap(5000); pthread_mutex_unlock(m); __asm__(""); }
TRACED void holds_rwlock(pthread_rwlock_t *l) { pthread_rwlock_wrlock(l); nap(5000); pthread_rwlock_unlock(l); __asm__(""); }

// A lock is held for 5 ms, and free for 3.
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *w_mutex(void *a) { name("w", a); for (;;) { pthread_mutex_lock(&mutex); pthread_mutex_unlock(&mutex); nap(300); } return 0; }
static void *e_mutex(void *a) { name("e", a); for (;;) { holds_mutex(&mutex); nap(3000); } return 0; }

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static void *w_rwlock(void *a) { name("w", a); for (;;) { pthread_rwlock_rdlock(&rwlock); pthread_rwlock_unlock(&rwlock); nap(300); } return 0; }
static void *e_rwlock(void *a) { name("e", a); for (;;) { holds_rwlock(&rwlock); nap(3000); } return 0; }

static pthread_mutex_t cond_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int ready;
static void *w_cond(void *a)
{
	name("w", a);
	for (;;) {
		pthread_mutex_lock(&cond_mutex);
		while (!ready) pthread_cond_wait(&cond, &cond_mutex);
		ready = 0;
		pthread_mutex_unlock(&cond_mutex);
	}
	return 0;
}
static void *e_cond(void *a)
{
	name("e", a);
	for (;;) {
		nap(5000);
		pthread_mutex_lock(&cond_mutex);
		ready = 1;
		pthread_cond_signal(&cond);
		pthread_mutex_unlock(&cond_mutex);
	}
	return 0;
}

static sem_t sem;
static void *w_sem(void *a) { name("w", a); for (;;) sem_wait(&sem); return 0; }
static void *e_sem(void *a) { name("e", a); for (;;) { nap(5000); sem_post(&sem); } return 0; }

static int pipes[2], pair[2], tcp[2], events, watched[2], epoll;
static int reads(int fd) { char c[8]; return read(fd, c, sizeof c) > 0; }
static int writes(int fd) { return write(fd, "12345678", 8) == 8; }
static void *w_pipe(void *a) { name("w", a); while (reads(pipes[0])); return 0; }
static void *e_pipe(void *a) { name("e", a); while (nap(5000), writes(pipes[1])); return 0; }
static void *w_pair(void *a) { name("w", a); char c[8]; while (recv(pair[0], c, sizeof c, 0) > 0); return 0; }
static void *e_pair(void *a) { name("e", a); while (nap(5000), send(pair[1], "1", 1, 0) == 1); return 0; }
static void *w_tcp(void *a) { name("w", a); char c[8]; while (recv(tcp[0], c, sizeof c, 0) > 0); return 0; }
static void *e_tcp(void *a) { name("e", a); while (nap(5000), send(tcp[1], "1", 1, 0) == 1); return 0; }
static void *w_event(void *a) { name("w", a); while (reads(events)); return 0; }
static void *e_event(void *a) { name("e", a); while (nap(5000), write(events, "\1\0\0\0\0\0\0\0", 8) == 8); return 0; }
static void *w_epoll(void *a) { name("w", a); struct epoll_event e; while (epoll_wait(epoll, &e, 1, -1) == 1 && reads(watched[0])); return 0; }
static void *e_epoll(void *a) { name("e", a); while (nap(5000), writes(watched[1])); return 0; }

static void connections(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof at;
	int l = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(l, (void *)&at, n) || listen(l, 1) || getsockname(l, (void *)&at, &n)) abort();
	tcp[1] = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(tcp[1], (void *)&at, n)) abort();
	tcp[0] = accept(l, 0, 0);
	epoll = epoll_create1(0);
	if (pipe(pipes) || pipe(watched) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || (events = eventfd(0, 0)) < 0) abort();
	struct epoll_event e = {.events = EPOLLIN};
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, watched[0], &e)) abort();
}

static void *hot(void *a)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	name("hot", "");
	for (;;) { for (int i = 0; i < 1000; i++) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m); } nap(100); }
	return 0;
}

int main(int argc, char **argv)
{
	static struct { const char *kind; void *(*w)(void *), *(*e)(void *); } all[] = {
		{"mutex", w_mutex, e_mutex}, {"rwlock", w_rwlock, e_rwlock}, {"cond", w_cond, e_cond}, {"sem", w_sem, e_sem}, {"pipe", w_pipe, e_pipe},
		{"pair", w_pair, e_pair}, {"tcp", w_tcp, e_tcp}, {"event", w_event, e_event}, {"epoll", w_epoll, e_epoll},
	};
	pthread_t t;
	sem_init(&sem, 0, 0);
	connections();
	printf("mutex %p\nrwlock %p\ncond %p\nsem %p\n", (void *)&mutex, (void *)&rwlock, (void *)&cond, (void *)&sem);
	printf("pipe %d\npair %d\ntcp %d\nevent %d\nepoll %d\n", pipes[0], pair[0], tcp[0], events, epoll);
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
		pthread_create(&t, 0, all[i].e, (void *)all[i].kind);
		nap(1000);
		pthread_create(&t, 0, all[i].w, (void *)all[i].kind);
	}
	if (argc > 1 && !strcmp(argv[1], "hot")) pthread_create(&t, 0, hot, 0);
	printf("ready\n");
	fflush(stdout);
	if (argc > 1 && atoi(argv[argc - 1]) > 0) { for (int i = 0; i < atoi(argv[argc - 1]) * 10; i++) nap(100000); return 0; }
	for (;;) pause();
}
