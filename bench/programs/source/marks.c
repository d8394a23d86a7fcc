/*
 * One portion of work for each line of input, answered by what came of it: threads that say what they do by every kind of marker, and that
 * pause their recording, and go on, in the midst of it.
 */
#include "callreel.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct state {
	uint64_t seed, sum;
	jmp_buf out;
};

static __thread volatile sig_atomic_t signals;

static void on_signal(int n)
{
	(void)n;
	if (signals++ % 3 == 0)
		CALLREEL_PAUSE();
	CALLREEL_INSTANT("signal", signals);
	CALLREEL_RESUME();
}

static unsigned next(struct state *s, unsigned n)
{
	s->seed = (s->seed * 1103515245 + 12345) % 2147483648;
	return (unsigned)(s->seed / 65536 % n);
}

/* A leaf with all that it has in registers, below its stack pointer, and in the x87 unit. */
__attribute__((noinline)) static uint64_t leaf(uint64_t a, uint64_t b)
{
	uint64_t below[8];
	long double whole = a;
	double real = (double)b;
	for (int i = 0; i < 8; i++)
		below[i] = a * (i + 1) ^ b;
	CALLREEL_COUNTER("a", a);
	whole = whole * 3 + real;
	if (a > b)
		CALLREEL_COUNTER("real", real);
	CALLREEL_FLOW_OUT("flow", a, b);
	for (int i = 0; i < 8; i++)
		a = a * 31 + below[i];
	CALLREEL_FLOW_IN("flow", a);
	return a + (uint64_t)whole;
}

__attribute__((noinline)) static int fail(struct state *s, int n)
{
	CALLREEL_SCOPE("fail", n);
	volatile int here = n;
	if (n == 0)
		longjmp(s->out, 7);
	if (n == 3)
		CALLREEL_PAUSE();
	return fail(s, n - 1) + here;
}

static void *work(void *arg)
{
	struct state *s = arg;
	char text[32];
	CALLREEL_THREAD_NAME("marks");
	for (unsigned i = 0; i < 3000; i++) {
		snprintf(text, sizeof text, "item %u", next(s, 1000));
		CALLREEL_BEGIN("item", i, CALLREEL_STR(text));
		s->sum = s->sum * 31 + leaf(i, next(s, 5000));
		if (i % 10 == 0)
			CALLREEL_PAUSE();
		CALLREEL_ASYNC_BEGIN("request", i);
		if (CALLREEL_RECORDING())
			CALLREEL_INSTANT("recorded", CALLREEL_STR(text));
		s->sum += strlen(text);
		CALLREEL_ASYNC_STEP("request", i, s->sum);
		if (i % 10 == 5)
			CALLREEL_RESUME();
		if (i % 100 == 0)
			raise(SIGUSR1);
		if (i % 60 == 0) {
			int left = setjmp(s->out);
			if (left == 0)
				fail(s, i / 60 % 7);
			s->sum += (unsigned)left;
		}
		CALLREEL_ASYNC_END("request", i);
		CALLREEL_END();
	}
	return NULL;
}

int main(void)
{
	char line[64];
	signal(SIGUSR1, on_signal);
	while (fgets(line, sizeof line, stdin)) {
		enum { THREADS = 3 };
		static struct state states[THREADS];
		pthread_t threads[THREADS];
		uint64_t sum = 0;
		for (int i = 0; i < THREADS; i++) {
			states[i] = (struct state){.seed = 42 + (unsigned)i};
			if (pthread_create(&threads[i], NULL, work, &states[i]) != 0)
				return 1;
		}
		for (int i = 0; i < THREADS; i++) {
			pthread_join(threads[i], NULL);
			sum = sum * 31 + states[i].sum;
		}
		int status = 1;
		CALLREEL_PAUSE();
		pid_t child = fork();
		if (child == 0) {
			CALLREEL_RESUME();
			_exit((int)(leaf(sum % 1000, 7) % 100));
		}
		if (child < 0 || waitpid(child, &status, 0) != child)
			return 1;
		CALLREEL_RESUME();
		printf("%llu %#x\n~end\n", (unsigned long long)sum, (unsigned)status);
		fflush(stdout);
	}
	return 0;
}
