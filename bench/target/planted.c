// Requests that go through a tree of functions. One in so many is slow, in a function that is chosen by chance: it is logged, with the clock of
// the calls.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

static uint64_t seed;
static int slow_at = -1;
static FILE *said;
volatile unsigned sink;

static unsigned chance(unsigned n) {
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((seed >> 33) % n);
}

static void wait_ms(long ms) {
	struct timespec t = {0, ms * 1000000};
	nanosleep(&t, NULL);
}

static void here(int id, const char *name) {
	if (slow_at != id)
		return;
	slow_at = -1;
	uint64_t from = __rdtsc();
	wait_ms(3);
	fprintf(said, "%s %llu %llu\n", name, (unsigned long long)from, (unsigned long long)__rdtsc());
	fflush(said);
}

#define F(name, id, body) __attribute__((noinline)) void name(unsigned x) { here(id, #name); sink += x; body; sink ^= x; }
F(leaf_add, 0, )
F(leaf_mix, 1, )
F(leaf_hash, 2, )
F(leaf_copy, 3, )
F(node_find, 4, for (int i = 0; i < 20; i++) leaf_hash(x + i))
F(node_put, 5, leaf_copy(x); leaf_mix(x))
F(row_read, 6, for (int i = 0; i < 10; i++) node_find(x + i); node_put(x))
F(row_write, 7, for (int i = 0; i < 4; i++) node_put(x + i); leaf_add(x))
F(table_scan, 8, for (int i = 0; i < 3; i++) row_read(x + i))
F(table_update, 9, row_write(x); row_read(x))
F(parse_head, 10, for (int i = 0; i < 30; i++) leaf_mix(x + i))
F(parse_body, 11, for (int i = 0; i < 60; i++) leaf_copy(x + i))
F(parse_request, 12, parse_head(x); parse_body(x))
F(format_reply, 13, for (int i = 0; i < 40; i++) leaf_add(x + i))
F(handle_request, 14, parse_request(x); table_scan(x); table_update(x); format_reply(x))

int main(int argc, char **argv) {
	long every = atol(argv[1]);
	said = fopen(argv[2], "w");
	seed = 42;
	if (!said || every < 2)
		return 2;
	for (unsigned n = 1;; n++) {
		if (chance((unsigned)every) == 0)
			slow_at = (int)chance(15);
		handle_request(n);
		slow_at = -1;
		if (n % 64 == 0) {
			struct timespec t = {0, 200000};
			nanosleep(&t, NULL);
		}
	}
}
