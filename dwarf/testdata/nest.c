/* What C code has: static functions that are inlined several levels deep, functions
   in sections of their own, cold parts, nested functions, files named by #line. */
extern int puts(const char *);
extern void abort(void);
void sink(int);

static inline __attribute__((always_inline)) int deep3(int n) { sink(n + 3); return n * 3; }
static inline __attribute__((always_inline)) int deep2(int n) { sink(n + 2); if (n & 1) { int k = deep3(n); return k + 1; } return deep3(n + 1); }
static inline __attribute__((always_inline)) int deep1(int n) { sink(n + 1); return deep2(n) + deep2(n * 5); }

__attribute__((noinline)) int top(int n)
{
	int sum = 0;
	for (int k = 0; k < n; k++) {
		sum += deep1(k);
		{
			int block = deep3(k);
			sum ^= block;
		}
	}
	return sum;
}

__attribute__((noinline)) int splits(int n)
{
	int sum = top(n);
	if (__builtin_expect(n > 1000000, 0)) {
		sink(deep1(n));
		puts("too many");
		abort();
	}
	return sum;
}

__attribute__((section(".text.apart"), noinline)) int apart(int n) { return deep2(n); }

#ifdef NESTED
__attribute__((noinline)) int nested(int n)
{
	int local = deep3(n);
	__attribute__((noinline)) int inner(int m) { sink(local); return deep2(m) + local; }
	return inner(n) + inner(n + 1) + deep1(local);
}
#endif

#line 700 "made/by a generator.h"
static inline __attribute__((always_inline)) int generated(int n) { sink(n); return n + 70; }
#line 100 "/elsewhere/absolute.c"
__attribute__((noinline)) int elsewhere(int n) { return generated(n) + deep3(n); }

int dead(int n) { return deep1(n) + generated(n); }

#ifndef FREESTANDING
int main(int argc, char **argv)
{
	int sum = splits(argc) + apart(argc) + elsewhere(argc);
#ifdef NESTED
	sum += nested(argc);
#endif
	return sum;
}
#endif

__attribute__((noinline)) void sink(int n) { __asm__ volatile("" : : "r"(n)); }
