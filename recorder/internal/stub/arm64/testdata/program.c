/* A program of no library that patches itself as a plan says that it reads from descriptor 4, with ring memory in descriptor 3. Without
 * descriptor 4 it doesn't. It prints what it has computed, and how often each function was called. */
typedef unsigned long u64;
typedef unsigned int u32;
typedef unsigned char u8;

static long sys(long n, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = n, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory", "cc");
	return x0;
}

#define FUNCTIONS 16
static u64 called[FUNCTIONS];
#define FUNCTION __attribute__((noinline, used))
#define COUNT(i) (++called[i])

volatile double half = 0.5;
volatile u64 table[8] = {3, 1, 4, 1, 5, 9, 2, 6};

FUNCTION u64 f0_leaf(u64 a, u64 b) { COUNT(0); return a * 31 + b; }
FUNCTION u64 f1_early(u64 a)
{
	if (!a) return 7;
	COUNT(1);
	return f0_leaf(a, a) ^ f0_leaf(a, 1);
}
FUNCTION u64 f2_tail(u64 a) { COUNT(2); return f0_leaf(a + 1, 2); }
FUNCTION u64 f3_switch(u64 a)
{
	COUNT(3);
	switch (a % 11) {
	case 0: return f0_leaf(a, 4);
	case 1: return a * 3;
	case 2: return f2_tail(a) + 1;
	case 3: return a ^ 0x5555;
	case 4: return f2_tail(a);
	case 5: return table[a & 7];
	case 6: return f0_leaf(1, a) * 5;
	case 7: return a << 3;
	default: return a / 3;
	}
}
FUNCTION u64 f4_recursive(u64 n)
{
	COUNT(4);
	if (n < 2) return n;
	u64 a = f4_recursive(n - 1), b = f4_recursive(n - 2);
	return (a * 3) ^ (b + a);
}
FUNCTION double f5_float(double a, double b) { COUNT(5); return a * half + b * 0.123456789; }
FUNCTION u64 f6_loop(u64 n)
{
	u64 s = 0;
	COUNT(6);
	while (n--) s += table[n & 7] * n;
	return s;
}
FUNCTION u64 f7_many(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h, u64 i, u64 j)
{
	COUNT(7);
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j;
}
typedef u64 (*unary)(u64);
FUNCTION u64 f8_indirect(unary f, u64 a) { COUNT(8); return f(a) + 1; }
FUNCTION u64 f9_indirect_tail(unary f, u64 a) { COUNT(9); return f(a); }
static u64 pairs(u64 a) { return a * 2; }
FUNCTION u64 f10_frame(u64 n)
{
	volatile u8 b[300];
	COUNT(10);
	for (u64 i = 0; i < 300; i++) b[i] = (u8)(i * n);
	return b[n % 300] + f0_leaf(b[7], 3);
}
FUNCTION __int128 f11_wide(__int128 a, u64 b) { COUNT(11); return a * b + 5; }
/* Its first instruction is a conditional jump back to itself or out of it; x0 is counted down. */
u64 f12_spin(u64 n);
__asm__(".globl f12_spin\n.type f12_spin,%function\n.p2align 2\nf12_spin:\n sub x0, x0, #1\n cbnz x0, f12_spin\n ret\n.size f12_spin,.-f12_spin\n");
/* A conditional tail jump, whose event is that of an exit only if it is taken. */
u64 f13_conditional(u64 a);
__asm__(".globl f13_conditional\n.type f13_conditional,%function\n.p2align 2\nf13_conditional:\n cmp x0, #40\n mov x1, #9\n b.hi f0_leaf\n adr x2, 1f\n ldr w2, [x2]\n add x0, x0, x2\n ret\n1: .word 12345\n.size f13_conditional,.-f13_conditional\n");

static void print(const char *s)
{
	u64 n = 0;
	while (s[n]) n++;
	sys(64, 1, (long)s, n, 0, 0, 0);
}
static void number(u64 v)
{
	char b[32];
	int i = 31;
	b[i] = 0;
	do b[--i] = "0123456789"[v % 10]; while (v /= 10);
	print(b + i);
	print("\n");
}

static u8 tls[4096];

static void patch(void)
{
	long r = sys(222, 0, 1 << 20, 1, 2, 4, 0);
	if (r < 0 && r > -4096) return;
	u64 *p = (u64 *)r, arena = p[0], size = p[1], ring = p[3], ringsize = p[4], n = p[6], i;
	sys(222, ring, ringsize, 3, 0x11, 3, 0);
	sys(222, arena, p[2] + 65536, 3, 0x32, -1, 0);
	for (i = 0; i < size; i++) ((u8 *)arena)[i] = ((u8 *)r)[65536 * 8 + i];
	for (i = 0; i < size; i += 64) __asm__ volatile("dc cvau, %0\n dsb ish\n ic ivau, %0" ::"r"(arena + i) : "memory");
	sys(226, arena, p[2], 5, 0, 0, 0);
	*(u32 *)(tls + 2048 + (long)p[5]) = (u32)sys(178, 0, 0, 0, 0, 0, 0);
	__asm__ volatile("msr tpidr_el0, %0" ::"r"(tls + 2048));
	*(u64 *)(arena + p[2]) = p[7];
	for (i = 0; i < n; i++) {
		u64 at = p[8 + 2 * i], page = at & ~4095ul;
		sys(226, page, 4096, 7, 0, 0, 0);
		*(u32 *)at = (u32)p[9 + 2 * i];
		__asm__ volatile("dc cvau, %0\n dsb ish\n ic ivau, %0\n dsb ish\n isb" ::"r"(at) : "memory");
		sys(226, page, 4096, 5 | (p[8 + 2 * i + 1] >> 32), 0, 0, 0);
	}
}

FUNCTION u64 work(u64 n)
{
	u64 s = 0, i;
	double d = 1;
	for (i = 0; i < n; i++) {
		s = s * 7 + f1_early(i & 3) + f2_tail(i) + f3_switch(i) + f4_recursive(i % 7);
		d = f5_float(d, i);
		s += f6_loop(i % 9) + f7_many(i, 1, 2, 3, 4, 5, 6, 7, i, 9) + f8_indirect(f1_early, i) + f8_indirect(pairs, i);
		s += f9_indirect_tail(f2_tail, i) + f10_frame(i % 300) + (u64)f11_wide(i, i) + (u64)(d * 1000);
		s += f12_spin(1 + i % 5) + f13_conditional(i % 80);
	}
	return s;
}

void cmain(void)
{
	u64 i;
	patch();
	number(work(3000));
	for (i = 0; i < FUNCTIONS; i++) number(called[i]);
	sys(94, 0, 0, 0, 0, 0, 0);
}
__asm__(".globl _start\n.type _start,%function\n_start:\n mov x29, #0\n bl cmain\n brk #1\n.size _start,.-_start\n");
