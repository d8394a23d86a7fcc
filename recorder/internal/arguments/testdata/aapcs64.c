/* A program of no library: what runs the generated functions of aapcs64_test.go. */
#include "aapcs64.h"

__asm__(".globl _start\n"
        "_start:\n"
        "  mov x29, #0\n"
        "  sub sp, sp, #16384\n" /* thunk copies what is above a caller's frame */
        "  bl cmain\n"
        "  brk #1\n"
        ".globl thunk\n"
        "thunk:\n"
        "  adrp x16, dump\n"
        "  add x16, x16, :lo12:dump\n"
        "  stp x0, x1, [x16]\n"
        "  stp x2, x3, [x16, #16]\n"
        "  stp x4, x5, [x16, #32]\n"
        "  stp x6, x7, [x16, #48]\n"
        "  str x8, [x16, #64]\n"
        "  mov x17, sp\n"
        "  str x17, [x16, #72]\n"
        "  str x30, [x16, #80]\n"
        "  stp q0, q1, [x16, #96]\n"
        "  stp q2, q3, [x16, #128]\n"
        "  stp q4, q5, [x16, #160]\n"
        "  stp q6, q7, [x16, #192]\n"
        "  add x9, x16, #224\n"
        "  mov x10, #4096\n"
        "1: ldr x11, [x17], #8\n"
        "  str x11, [x9], #8\n"
        "  subs x10, x10, #8\n"
        "  b.ne 1b\n"
        "  ldr x17, [x16, #88]\n"
        "  blr x17\n"
        "  adrp x16, dump\n"
        "  add x16, x16, :lo12:dump\n"
        "  add x17, x16, #4096\n"
        "  stp x0, x1, [x17, #224]\n"
        "  stp q0, q1, [x17, #240]\n"
        "  stp q2, q3, [x17, #272]\n"
        "  ldr x30, [x16, #80]\n"
        "  ret\n");

struct dump dump __attribute__((aligned(16)));
void (*volatile through)(void) = thunk;

static long sys(long n, long a, const void *b, long c)
{
    register long x8 __asm__("x8") = n, x0 __asm__("x0") = a, x2 __asm__("x2") = c;
    register const void *x1 __asm__("x1") = b;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
}

static char out[1 << 16];
static u64 used;

static void flush(void)
{
    u64 at = 0;
    while (at < used) {
        long n = sys(64, 1, out + at, (long)(used - at));
        if (n <= 0)
            sys(94, 1, 0, 0);
        at += n;
    }
    used = 0;
}

static void put(char c)
{
    if (used == sizeof out)
        flush();
    out[used++] = c;
}

static void text(const char *s)
{
    for (; *s; s++)
        put(*s);
}

static void hex(const void *p, u64 n)
{
    for (const u8 *b = p; n--; b++) {
        put("0123456789abcdef"[*b >> 4]);
        put("0123456789abcdef"[*b & 15]);
    }
    put('\n');
}

void begin(const char *name, void (*f)(void))
{
    dump.real = (u64)f;
    text("call ");
    text(name);
    put('\n');
}

void end(void)
{
    text("dump ");
    hex(&dump, sizeof dump);
}

void show(char kind, const char *name, const void *value, u64 size)
{
    put(kind);
    put(' ');
    text(name);
    put(' ');
    hex(value, size);
}

void fill(void *value, u64 size)
{
    static u64 seed = 88172645463325252ul;
    for (volatile u8 *p = value; size--; p++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        *p = (u8)(seed >> 20);
    }
}

void *memcpy(void *to, const void *from, u64 n)
{
    volatile u8 *t = to;
    const u8 *f = from;
    while (n--)
        *t++ = *f++;
    return to;
}

void *memset(void *to, int c, u64 n)
{
    for (volatile u8 *t = to; n--;)
        *t++ = (u8)c;
    return to;
}

extern void calls(void);

void cmain(void)
{
    calls();
    flush();
    sys(94, 0, 0, 0);
}
