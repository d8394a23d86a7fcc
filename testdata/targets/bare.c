/*
 * bare MODE CALLS: a program without a C library and without a thread pointer.
 * Its threads (mode "threads": two besides the first, made by bare clone(2);
 * mode "one": none; mode "child": a child by bare fork(2)) make CALLS calls of
 * leaf each, after a line on stdin; "counted" is printed when all are made, and
 * the process stays until stdin ends. In mode "descriptors", with -DDESCRIBED,
 * it is as "threads", and each thread has a thread pointer, behind which a descriptor with its ID
 * is found as Android's C library has it (bionic, TLS_SLOT_THREAD_ID and
 * pthread_internal_t); the first makes 1000 calls more while its ID is -1 there,
 * as bionic has it while it forks.
 */
#define TRACED __attribute__((noipa))
typedef unsigned long u64;

#ifdef __aarch64__
static long call(long n, long a, long b, long c, long d, long e)
{
    register long x8 __asm__("x8") = n;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return x0;
}

enum { GETTID = 178, READ = 63, WRITE = 64, CLONE = 220, EXIT = 93, WAIT4 = 260, FUTEX = 98, EXIT_GROUP = 94, CHILD = 17 };

static long make_child(void)
{
    return call(CLONE, CHILD, 0, 0, 0, 0);
}

/* The compiler would call a library for that. */
static void count(volatile int *n)
{
    int old, failed;
    __asm__ volatile("1:\tldaxr %w0, %2\n\t"
                     "add %w0, %w0, #1\n\t"
                     "stlxr %w1, %w0, %2\n\t"
                     "cbnz %w1, 1b"
                     : "=&r"(old), "=&r"(failed), "+Q"(*n)
                     :
                     : "memory");
}
#else
static long call(long n, long a, long b, long c, long d, long e)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
    return r;
}

enum { GETTID = 186, ARCH_PRCTL = 158, READ = 0, WRITE = 1, FORK = 57, EXIT = 60, WAIT4 = 61, FUTEX = 202, EXIT_GROUP = 231 };

static long make_child(void)
{
    return call(FORK, 0, 0, 0, 0, 0);
}

static void count(volatile int *n)
{
    __atomic_add_fetch(n, 1, __ATOMIC_SEQ_CST);
}
#endif

TRACED u64 leaf(u64 x)
{
    return x * 3 + 1;
}

static void say(const char *text)
{
    long n = 0;
    while (text[n])
        n++;
    call(WRITE, 1, (long)text, n, 0, 0);
}

static void wait_line(void)
{
    char c;
    while (call(READ, 0, (long)&c, 1, 0, 0) == 1 && c != '\n')
        ;
}

static u64 calls;
static volatile int started, done;

TRACED void work(void)
{
    for (u64 i = 0; i < calls; i++)
        if (leaf(i) != i * 3 + 1) {
            say("wrong\n");
            call(EXIT_GROUP, 1, 0, 0, 0, 0);
        }
}

__attribute__((used, noreturn)) static void thread(void)
{
    while (!started)
        ;
    work();
    count(&done);
    for (;;) /* it stays, as the first one does */
        call(FUTEX, (long)&done, 0, done, 0, 0);
}

struct descriptor {
    void *next, *prev;
    int tid;
};

/* Where thread pointers lead; each thread's descriptor is at another distance. */
static struct {
    void *slots[8];
    char between[3][100];
} blocks[3];
static struct descriptor descriptors[3];

static void *pointer_of(int i)
{
    blocks[i].slots[0] = blocks[i].slots;
    blocks[i].slots[1] = &descriptors[i];
    return blocks[i].slots;
}

static void describe_first(void)
{
#ifdef DESCRIBED /* else nothing here sets a thread pointer */
    descriptors[0].tid = (int)call(GETTID, 0, 0, 0, 0, 0);
#ifdef __aarch64__
    __asm__ volatile("msr tpidr_el0, %0" ::"r"(pointer_of(0)));
#else
    call(ARCH_PRCTL, 0x1002, (long)pointer_of(0), 0, 0, 0); /* ARCH_SET_FS */
#endif
#endif
}

/* A thread on a stack of its own; with i > 0 it has the descriptor i, else no memory of its own. */
static long spawn(char *top, int i)
{
    long flags = 0x100 | 0x200 | 0x400 | 0x800 | 0x10000 | 0x40000; /* VM FS FILES SIGHAND THREAD SYSVSEM */
    long r;
    void *tls = 0;
    int *tid = 0;
    if (i > 0) {
        flags |= 0x80000 | 0x100000; /* SETTLS PARENT_SETTID */
        tls = pointer_of(i);
        tid = &descriptors[i].tid;
    }
#ifdef __aarch64__
    __asm__ volatile("mov x8, #220\n\t"
                     "mov x0, %1\n\t"
                     "mov x1, %2\n\t"
                     "mov x2, %3\n\t"
                     "mov x3, %4\n\t"
                     "mov x4, xzr\n\t"
                     "svc 0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, xzr\n\t"
                     "bl thread\n"
                     "1:\tmov %0, x0"
                     : "=r"(r)
                     : "r"(flags), "r"(top), "r"(tid), "r"(tls)
                     : "x0", "x1", "x2", "x3", "x4", "x8", "x30", "memory");
#else
    register long r10 __asm__("r10") = 0;
    register long r8 __asm__("r8") = (long)tls;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "call thread\n"
                     "1:"
                     : "=a"(r)
                     : "a"(56L), "D"(flags), "S"(top), "d"(tid), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
#endif
    return r;
}

static char stacks[2][1 << 16] __attribute__((aligned(16)));

__attribute__((used, noreturn)) static void begin(long *sp)
{
    long argc = sp[0];
    char **argv = (char **)(sp + 1);
    char mode = argc > 1 ? argv[1][0] : 'o';
    const char *n = argc > 2 ? argv[2] : "100000";
    int described = mode == 'd';
    int threads = mode == 't' || described ? 2 : 0;

    while (*n)
        calls = calls * 10 + (u64)(*n++ - '0');
    if (described)
        describe_first();
    for (int i = 0; i < threads; i++)
        if (spawn(stacks[i] + sizeof stacks[i], described ? i + 1 : 0) < 0)
            call(EXIT_GROUP, 2, 0, 0, 0, 0);
    say("ready\n");
    wait_line();
    started = 1;
    work();
    if (described) {
        int tid = descriptors[0].tid;
        *(volatile int *)&descriptors[0].tid = -1;
        for (int i = 0; i < 1000; i++)
            leaf(i);
        *(volatile int *)&descriptors[0].tid = tid;
    }
    if (mode == 'c') {
        long child = make_child();
        if (child == 0) {
            work();
            call(EXIT_GROUP, 0, 0, 0, 0, 0);
        }
        int status = 1;
        call(WAIT4, child, (long)&status, 0, 0, 0);
        if (status != 0)
            call(EXIT_GROUP, 3, 0, 0, 0, 0);
    }
    while (done != threads)
        ;
    say("counted\n");
    wait_line();
    say("bare ok\n");
    call(EXIT_GROUP, 0, 0, 0, 0, 0);
    __builtin_unreachable();
}

#ifdef __aarch64__
__asm__(".globl _start\n_start:\n\tmov x29, xzr\n\tmov x30, xzr\n\tmov x0, sp\n\tbl begin\n\tbrk #0");
#else
__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall begin\n\thlt");
#endif
