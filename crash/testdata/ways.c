// Crashes in the way that its argument names.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define KEPT __attribute__((noipa))
volatile int sink;

KEPT static int reads(int *p) { return *p; }
static inline int between(long at) { return reads((int *)at) + 1; }
KEPT static void null(void) { sink = between(4); }
KEPT static void nowhere(void) {
	void (*volatile f)(void) = 0;
	f();
	sink++;
}
KEPT static void overflow(int n) {
	volatile char pad[4096];
	pad[n & 4095] = n;
	overflow(n + 1);
	sink = pad[0];
}
KEPT static void smashed(void) {
	volatile long pad[4];
	volatile long *p = pad;
	for (int k = 0; k < 40; k++) p[k] = 0x4141414141414141;
}
KEPT static void handles(int sig) { sink = reads((int *)(long)sig); }
KEPT static void handler(void) {
	sigaltstack(&(stack_t){.ss_sp = malloc(1 << 16), .ss_size = 1 << 16}, 0);
	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handles, .sa_flags = SA_ONSTACK}, 0);
	kill(getpid(), SIGUSR1);
	sink++;
}
KEPT static void vdso(void) {
	gettimeofday((void *)0x30, 0);
	sink++;
}
static void *starts(void *p) {
	null();
	return p;
}
static void *waits(void *p) {
	for (;;) pause();
	return p;
}
KEPT static void thread(void) {
	pthread_t t;
	for (int k = 0; k < 100; k++) pthread_create(&t, 0, waits, 0);
	pthread_create(&t, 0, starts, 0);
	pthread_join(t, 0);
	sink++;
}

int main(int argc, char **argv) {
	if (!strcmp(argv[1], "null")) null();
	if (!strcmp(argv[1], "nowhere")) nowhere();
	if (!strcmp(argv[1], "overflow")) overflow(argc);
	if (!strcmp(argv[1], "smashed")) smashed();
	if (!strcmp(argv[1], "handler")) handler();
	if (!strcmp(argv[1], "vdso")) vdso();
	if (!strcmp(argv[1], "thread")) thread();
	return sink;
}
