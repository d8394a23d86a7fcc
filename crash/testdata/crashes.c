// Crashes in a known place with another thread that waits. On SIGSEGV it has Crashpad's handler,
// whose path and database are its arguments, write a minidump of it.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// What the handler reads from its parent's memory (Crashpad, util/linux/exception_information.h).
static struct __attribute__((packed)) {
	uint64_t siginfo, context;
	int32_t tid;
} info;
static char **arguments;

static void crashed(int sig, siginfo_t *si, void *context) {
	(void)sig;
	info.siginfo = (uintptr_t)si;
	info.context = (uintptr_t)context;
	info.tid = syscall(SYS_gettid);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	pid_t child = fork();
	if (child == 0) {
		char database[4096], address[64];
		snprintf(database, sizeof database, "--database=%s", arguments[2]);
		snprintf(address, sizeof address, "--trace-parent-with-exception=%p", (void *)&info);
		execl(arguments[1], arguments[1], database, address, "--no-upload-gzip", "--annotation=prod=crashes", (char *)0);
		_exit(8);
	}
	int status;
	waitpid(child, &status, 0);
	_exit(status == 0 ? 7 : 9);
}

static volatile int *nowhere = (int *)0x10;
static inline __attribute__((always_inline)) void deepest(int n) { *nowhere = n; }
__attribute__((noinline)) void middle(int n) { deepest(n + 1); __asm__ volatile(""); }
__attribute__((noinline)) void outer(int n) { middle(n + 1); __asm__ volatile(""); }

static pthread_barrier_t ready;
__attribute__((noinline)) void waits(void) {
	pthread_barrier_wait(&ready);
	for (;;) pause();
}
static void *other(void *p) {
	waits();
	return p;
}

int main(int argc, char **argv) {
	static char stack[1 << 16];
	pthread_t thread;
	arguments = argv;
	sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, 0);
	sigaction(SIGSEGV, &(struct sigaction){.sa_sigaction = crashed, .sa_flags = SA_SIGINFO | SA_ONSTACK}, 0);
	pthread_barrier_init(&ready, 0, 2);
	pthread_create(&thread, 0, other, 0);
	pthread_barrier_wait(&ready);
	usleep(20000); // to let the other get to its wait
	outer(argc);
}
