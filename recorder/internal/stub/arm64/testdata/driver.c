/* A program of no library that runs event code with all registers set, in threads and under signals. It reads a plan from
 * descriptor 4, has ring memory in descriptor 3, and does what it reads from descriptor 0, a line each:
 *
 *   state N     calls every function N times with registers by chance, and checks that all are kept
 *   calls N     makes N calls
 *   threads T N makes N calls in each of T threads, and waits for them
 *   flip T N    the same, and changes instructions of the plan's list meanwhile, back and forth; it leaves them as they were
 *   alarm N     lets signals come every N µs, whose handler makes calls; 0 for no more
 *   gate V      opens the gate, or closes it with 0
 *   same F G    calls functions F and G with the same registers, and checks that they leave the same
 *   keep F A B  calls function F with A and B as its first arguments, 1 as the others, and checks that all registers are kept
 *   name F A    the same with the address of a name as the second argument
 *   fork N      makes N calls in a forked child, which finds the gate's page zero, and waits for it
 *   once F      calls function F once
 *   both A      calls an entry and an exit with A as the first argument, from the same place, and checks that all registers are kept
 *   made        says how many calls were made
 */
typedef unsigned long u64;
typedef unsigned int u32;
typedef unsigned char u8;

#define NR_read 63
#define NR_write 64
#define NR_exit 93
#define NR_exit_group 94
#define NR_futex 98
#define NR_setitimer 103
#define NR_sigaltstack 132
#define NR_rt_sigaction 134
#define NR_rt_sigreturn 139
#define NR_gettid 178
#define NR_clone 220
#define NR_mmap 222
#define NR_mprotect 226

static long sys(long n, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = n, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory", "cc");
	return x0;
}

static void print(const char *s)
{
	u64 n = 0;
	while (s[n]) n++;
	sys(NR_write, 1, (long)s, n, 0, 0, 0);
}

static void number(u64 v, int base)
{
	char b[32];
	int i = 31;
	b[i] = 0;
	do b[--i] = "0123456789abcdef"[v % base]; while (v /= base);
	print(b + i);
}

static void die(const char *s)
{
	print(s);
	print("\n");
	sys(NR_exit_group, 1, 0, 0, 0, 0, 0);
}

/* What a call gets and leaves. state.S knows it. */
struct state {
	u64 x[31], flags;
	u8 q[32][16];
	u64 sp;
	u64 sve; /* length of vectors in bytes, or 0; and 1<<16 for streaming mode */
	u8 z[32][256], p[17][32];
};
extern void run_state(void (*fn)(void), struct state *in, struct state *out);
extern void start_thread(void);

static struct plan {
	u64 arena, size, room, ring, ringsize, open;
	long tid;
	u64 sve, stack, funcs, func[256];
	u64 flips;
	struct { u64 at, was, other; } flip[256]; /* a byte */
} *plan;

static u64 made;
static volatile u64 *gate;

static void count(void) { __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED); }

static void set_tls(u8 *block, u32 tid)
{
	*(u32 *)(block + 2048 + plan->tid) = tid;
	*(u64 *)(block + 2048 + 8) = (u64)(block + 2048 + plan->tid - 16); /* the descriptor that has it, 16 bytes on */
	__asm__ volatile("msr tpidr_el0, %0" ::"r"(block + 2048));
}

static u8 *block_of(void)
{
	u8 *p;
	__asm__ volatile("mrs %0, tpidr_el0" : "=r"(p));
	return p;
}

static u64 seed = 88172645463325252ull;
static u64 chance(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

typedef void (*func)(void);
static func entry(u64 i) { return (func)plan->func[2 * (i % (plan->funcs / 2))]; }
static func leave(u64 i) { return (func)plan->func[2 * (i % (plan->funcs / 2)) + 1]; }

static __attribute__((noinline)) void call(u64 i, int depth)
{
	func e = entry(i), l = leave(i);
	e();
	count();
	if (depth > 0) call(i + 1, depth - 1);
	l();
	__asm__ volatile("" ::: "memory");
}

static void calls(u64 n)
{
	u64 i;
	for (i = 0; i + 3 < n; i += 4) call(i, 3);
	for (; i < n; i++) call(i, 0);
}

static void handler(int n) { call(chance(), 1); }

static struct state in, out;

static void check(u64 f, int args, u64 a, u64 b)
{
	u64 i, *w = (u64 *)&in;
	{
		{
			for (i = 0; i < sizeof in / 8; i++) w[i] = chance();
			if (args) {
				in.x[0] = a;
				in.x[1] = b;
				in.x[2] = in.x[3] = 1;
			}
			in.flags &= 0xF0000000;
			in.sve = plan->sve;
			run_state((func)plan->func[f], &in, &out);
			if (f % 2 == 0) count();
			for (i = 0; i < 30; i++)
				if (i != 16 && i != 17 && in.x[i] != out.x[i]) {
					print("x");
					number(i, 10);
					print(" ");
					number(in.x[i], 16);
					print(" ");
					number(out.x[i], 16);
					die(" changed");
				}
			if (in.flags != out.flags) die("flags changed");
			if (in.sp != out.sp) die("stack pointer changed");
			if (in.x[30] != out.x[30]) die("link register changed");
			for (i = 0; i < 32 * 16; i++)
				if (in.q[0][i] != out.q[0][i]) die("q changed");
			if (plan->sve) {
				u64 k, n = plan->sve & 0xffff, rows = plan->sve >> 16 ? 16 : 17;
				for (i = 0; i < 32; i++)
					for (k = 0; k < n; k++)
						if (in.z[i][k] != out.z[i][k]) die("z changed");
				for (i = 0; i < rows; i++)
					for (k = 0; k < n / 8; k++)
						if (in.p[i][k] != out.p[i][k]) die(i == 16 ? "ffr changed" : "p changed");
			}
		}
	}
}

static void state(u64 n)
{
	u64 r, f;
	for (r = 0; r < n; r++)
		for (f = 0; f < plan->funcs; f++) check(f, 0, 0, 0);
}

static struct state other;

static void same(u64 f, u64 g)
{
	u64 i, *w = (u64 *)&in;
	for (i = 0; i < sizeof in / 8; i++) w[i] = chance();
	in.flags &= 0xF0000000;
	in.sve = 0;
	run_state((func)plan->func[f], &in, &out);
	run_state((func)plan->func[g], &in, &other);
	for (i = 0; i < 31; i++)
		if (i != 16 && i != 17 && other.x[i] != out.x[i]) {
			print("x");
			number(i, 10);
			print(" ");
			number(out.x[i], 16);
			print(" ");
			number(other.x[i], 16);
			die(" differs");
		}
	if (out.flags != other.flags) die("flags differ");
	if (out.sp != other.sp) die("stack pointer differs");
	for (i = 0; i < 32 * 16; i++)
		if (out.q[0][i] != other.q[0][i]) die("q differs");
}

#define STACK 65536
static u8 stacks[64][STACK] __attribute__((aligned(64)));
static u32 alive[64];
static u64 thread_calls;

void thread_main(u64 i)
{
	u8 *block = stacks[i];
	set_tls(block, sys(NR_gettid, 0, 0, 0, 0, 0, 0));
	calls(thread_calls);
	__atomic_store_n(&alive[i], 0, __ATOMIC_RELEASE);
	sys(NR_futex, (long)&alive[i], 1, 1, 0, 0, 0);
	sys(NR_exit, 0, 0, 0, 0, 0, 0);
}

/* As the kernel does behind what it writes to code. */
static void change(u64 at, u8 byte)
{
	*(volatile u8 *)at = byte;
	__asm__ volatile("dc cvau, %0\n dsb ish\n ic ivau, %0\n dsb ish\n isb" ::"r"(at) : "memory");
}

static int any_alive(u64 t)
{
	while (t > 0)
		if (__atomic_load_n(&alive[--t], __ATOMIC_ACQUIRE)) return 1;
	return 0;
}

static void flip(u64 t)
{
	u64 i;
	if (sys(NR_mprotect, plan->arena, plan->room, 7, 0, 0, 0)) die("mprotect");
	while (any_alive(t)) {
		i = chance() % plan->flips;
		change(plan->flip[i].at, chance() & 1 ? plan->flip[i].was : plan->flip[i].other);
	}
	for (i = 0; i < plan->flips; i++) change(plan->flip[i].at, plan->flip[i].was);
}

static void threads(u64 t, u64 n, int flips)
{
	u64 i;
	thread_calls = n;
	for (i = 0; i < t; i++) {
		u64 *top = (u64 *)(stacks[i] + STACK - 16);
		top[0] = i;
		alive[i] = 1;
		/* VM, FS, FILES, SIGHAND, THREAD, SYSVSEM */
		register long x8 __asm__("x8") = NR_clone, x0 __asm__("x0") = 0x50f00, x1 __asm__("x1") = (long)top;
		register long x2 __asm__("x2") = 0, x3 __asm__("x3") = 0, x4 __asm__("x4") = 0;
		__asm__ volatile("svc #0\n cbnz x0, 1f\n b start_thread\n1:" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory", "cc");
		if (x0 < 0) die("clone");
	}
	if (flips) flip(t);
	for (i = 0; i < t; i++)
		while (__atomic_load_n(&alive[i], __ATOMIC_ACQUIRE)) sys(NR_futex, (long)&alive[i], 0, 1, 0, 0, 0);
}

static void forked(u64 n)
{
	long pid = sys(NR_clone, 17, 0, 0, 0, 0, 0);
	if (pid < 0) die("fork");
	if (pid == 0) {
		u64 i;
		for (i = 0; i < 8192; i++) gate[i] = 0;
		*(u32 *)(block_of() + plan->tid) = sys(NR_gettid, 0, 0, 0, 0, 0, 0);
		calls(n);
		sys(NR_exit_group, 0, 0, 0, 0, 0, 0);
	}
	u64 status = 0;
	while (sys(260, pid, (long)&status, 0, 0, 0, 0) == -4) {}
	if (status) die("the child failed");
}

static void alarm_every(u64 us)
{
	u64 t[4] = {0, us, 0, us};
	sys(NR_setitimer, 0, (long)t, 0, 0, 0, 0);
}

static char line[256];
static int read_line(void)
{
	int n = 0;
	while (n < 255) {
		long r = sys(NR_read, 0, (long)(line + n), 1, 0, 0, 0);
		if (r == -4) continue;
		if (r != 1) return 0;
		if (line[n] == '\n') break;
		n++;
	}
	line[n] = 0;
	return 1;
}

static u64 word(int k)
{
	char *s = line;
	u64 v = 0;
	for (; k > 0; k--) {
		while (*s && *s != ' ') s++;
		while (*s == ' ') s++;
	}
	for (; *s >= '0' && *s <= '9'; s++) v = v * 10 + *s - '0';
	return v;
}

static struct { void *handler; u64 flags; void *restorer; u64 mask; } action;
static u8 tls[4096] __attribute__((aligned(64)));

void cmain(void)
{
	long r = sys(NR_mmap, 0, 1 << 16, 1, 2, 4, 0);
	if (r < 0 && r > -4096) die("plan");
	plan = (struct plan *)r;
	r = sys(NR_mmap, plan->ring, plan->ringsize, 3, 0x11, 3, 0);
	if ((u64)r != plan->ring) die("ring");
	r = sys(NR_mmap, plan->arena, plan->room, 5, 0x12, 4, 1 << 16);
	if ((u64)r != plan->arena) die("arena");
	r = sys(NR_mmap, plan->arena + plan->room, 65536, 3, 0x32, -1, 0);
	if (r < 0 && r > -4096) die("gate");
	gate = (u64 *)(plan->arena + plan->room);
	gate[0] = plan->open;
	gate[1] = plan->ring;
	set_tls(tls, sys(NR_gettid, 0, 0, 0, 0, 0, 0));
	action.handler = (void *)handler;
	action.flags = 0x10000000;
	sys(NR_rt_sigaction, 14, (long)&action, 0, 8, 0, 0);
	if (plan->stack) {
		gate[4064 / 8] = sys(NR_gettid, 0, 0, 0, 0, 0, 0);
		gate[4072 / 8] = ((u64)&r & ~65535ul) - (1 << 20);
		gate[4080 / 8] = 2 << 20;
	}
	while (read_line()) {
		switch (line[0] + line[1]) {
		case 's' + 't': state(word(1)); break;
		case 'c' + 'a': calls(word(1)); break;
		case 't' + 'h': threads(word(1), word(2), 0); break;
		case 'f' + 'l': threads(word(1), word(2), 1); break;
		case 'a' + 'l': alarm_every(word(1)); break;
		case 's' + 'a': same(word(1), word(2)); break;
		case 'k' + 'e': check(word(1), 1, word(2), word(3)); break;
		case 'n' + 'a': check(word(1), 1, word(2), (u64)"stranger"); break;
		case 'f' + 'o': forked(word(1)); break;
		case 'b' + 'o':
			check(0, 1, word(1), 0);
			check(1, 1, word(1), 0);
			break;
		case 'g' + 'a': *gate = word(1) ? plan->open : 0; break;
		case 'o' + 'n': ((func)plan->func[word(1)])(); break;
		case 'm' + 'a': number(made, 10); print("\n"); continue;
		default: die("what?");
		}
		print("ok\n");
	}
	sys(NR_exit_group, 0, 0, 0, 0, 0, 0);
}
