/*
 * One portion of work for each line of input, answered by what came of it: what
 * a C library has to offer, in threads, with jumps out of nested calls.
 */
#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <search.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wchar.h>

struct state {
	uint64_t seed, sum;
	jmp_buf out;
	volatile sig_atomic_t signals;
};

static __thread volatile sig_atomic_t signals;

static void on_signal(int n)
{
	(void)n;
	signals++;
}

static unsigned next(struct state *s, unsigned n)
{
	s->seed = (s->seed * 1103515245 + 12345) % 2147483648;
	return (unsigned)(s->seed / 65536 % n);
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

__attribute__((noinline)) static int fail(struct state *s, int n)
{
	volatile int here = n;
	if (n == 0)
		longjmp(s->out, 7);
	return fail(s, n - 1) + here;
}

static void *work(void *arg)
{
	struct state *s = arg;
	enum { COUNT = 4000 };
	uint32_t *v = malloc(COUNT * sizeof *v);
	for (int i = 0; i < COUNT; i++)
		v[i] = next(s, 1000000);
	qsort(v, COUNT, sizeof *v, by_value);
	void *tree = NULL;
	for (int i = 0; i < COUNT; i += 4)
		tsearch(&v[i], &tree, by_value);
	for (int i = 0; i < COUNT; i += 4) {
		if (!bsearch(&v[i], v, COUNT, sizeof *v, by_value) || !tfind(&v[i], &tree, by_value))
			abort();
	}
	for (int i = 0; i < COUNT; i += 4)
		tdelete(&v[i], &tree, by_value);
	for (int i = 0; i < 1000; i++) {
		char text[128], *end;
		snprintf(text, sizeof text, "%08x|%-12.4f|%s|%lld", v[i], sqrt(v[i]), i % 2 ? "odd" : "even", (long long)v[i] * v[i]);
		s->sum = s->sum * 31 + strlen(text) + (uint64_t)strtod(strchr(text, '|') + 1, &end);
		for (char *p = text; *p; p++)
			s->sum = s->sum * 31 + (uint64_t)toupper((unsigned char)*p);
	}
	for (int i = 0; i < 300; i++) {
		int r = setjmp(s->out);
		if (r == 0)
			fail(s, i % 40);
		s->sum += (uint64_t)r;
	}
	for (int i = 0; i < 50; i++)
		raise(SIGUSR1);
	s->sum += (uint64_t)signals;
	signals = 0;
	wchar_t wide[64];
	swprintf(wide, 64, L"%ls %d", L"wide", (int)(s->sum % 1000));
	s->sum += wcslen(wide);
	free(v);
	return NULL;
}

int main(void)
{
	char line[64];
	signal(SIGUSR1, on_signal);
	while (fgets(line, sizeof line, stdin)) {
		struct state s[4];
		pthread_t t[4];
		for (unsigned i = 0; i < 4; i++) {
			memset(&s[i], 0, sizeof s[i]);
			s[i].seed = 42 + i;
			if (pthread_create(&t[i], NULL, work, &s[i]) != 0)
				abort();
		}
		for (int i = 0; i < 4; i++)
			pthread_join(t[i], NULL);
		for (int i = 0; i < 4; i++)
			printf("%llx ", (unsigned long long)s[i].sum);
		printf("\n~end\n");
		fflush(stdout);
	}
	return 0;
}
