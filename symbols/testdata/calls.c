// Plain C with a part that the compiler moves away, and assembly without line rows.
#include <stdio.h>
#include <stdlib.h>

__asm__(".text\n.globl bare\n.type bare, @function\nbare:\n\tnop\n\tret\n.size bare, .-bare\n"
        ".p2align 5\n.globl open_label\nopen_label:\n\tnop\n\tret\n");

static inline int step(int x) { return x * 5 + 1; }

__attribute__((noinline)) int walk(const char *name, int n) {
	int sum = 0;
	for (int i = 0; i < n; i++) {
		sum += step(step(i)) ^ n;
		if (__builtin_expect(sum == 123456789, 0)) {
			fprintf(stderr, "%s: unlikely %d\n", name, sum);
			abort();
		}
	}
	return sum;
}

int main(int argc, char **argv) { return walk(argv[0], argc * 100) & 1; }
