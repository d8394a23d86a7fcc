/*
 * rareslow LOG EVERY: requests that go through a tree of functions. One in so many
 * waits for 20 ms in one of them that is chosen by chance, which is logged when
 * stdin ends: function, and time-stamp counter before and behind.
 */
#include "target.h"
#include "ticks.h"
#include <time.h>

enum { MOST = 4096 };
static struct { const char *function; unsigned long long from, to; } waited[MOST];
static int count, slow_at = -1;
static unsigned long long seed = 42;
volatile unsigned sink;

static unsigned chance(unsigned n) {
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((seed >> 33) % n);
}

static inline __attribute__((always_inline)) void here(int id, const char *name) {
	if (slow_at != id || count == MOST)
		return;
	slow_at = -1;
	struct timespec t = {0, 20000000};
	waited[count].function = name;
	waited[count].from = ticks();
	nanosleep(&t, NULL);
	waited[count++].to = ticks();
}

#define F(name, id, body) \
	__attribute__((noinline)) void name(unsigned x) { here(id, #name); sink += x; body; sink ^= x; }
F(rs_hash, 0, )
F(rs_copy, 1, )
F(rs_find, 2, for (int i = 0; i < 20; i++) rs_hash(x + i))
F(rs_row, 3, for (int i = 0; i < 10; i++) rs_find(x + i); rs_copy(x))
F(rs_scan, 4, for (int i = 0; i < 3; i++) rs_row(x + i))
F(rs_parse, 5, for (int i = 0; i < 30; i++) rs_copy(x + i))
F(rs_request, 6, rs_parse(x); rs_scan(x))

int main(int argc, char **argv)
{
	CHECK(argc == 3);
	unsigned every = (unsigned)atoi(argv[2]);
	CHECK(every > 0);
	target_ready();
	for (unsigned n = 1; n % 256 != 0 || !target_told_to_stop(); n++) {
		if (chance(every) == 0)
			slow_at = (int)chance(7);
		rs_request(n);
		slow_at = -1;
	}
	FILE *log = fopen(argv[1], "w");
	CHECK(log);
	for (int i = 0; i < count; i++)
		fprintf(log, "%s %llu %llu\n", waited[i].function, waited[i].from, waited[i].to);
	CHECK(fclose(log) == 0);
	printf("rareslow slow=%d ok\n", count);
	return 0;
}
