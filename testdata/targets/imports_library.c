/*
 * A library for the program "imports". With INTERPOSE it defines one of its functions only, for LD_PRELOAD; with WHICH it is a library for the
 * program "loading" that needs the other.
 */
#include <stdarg.h>

#ifdef WHICH
int lib_mul(int a, int b), lib_add(int a, int b);

int library_value(int x)
{
    int seven = lib_mul(x, 7);
    __asm__("" : "+r"(seven));
    seven = lib_add(seven, WHICH);
    __asm__("" : "+r"(seven));
    return seven;
}
#elif defined INTERPOSE
int lib_mul(int a, int b)
{
    return b * a;
}
#else
struct lib_large {
    long v[6];
};

int lib_add(int a, int b)
{
    return a + b;
}

int lib_mul(int a, int b)
{
    return a * b;
}

/* Six arguments in registers, four on the stack. */
long lib_stack(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j)
{
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j;
}

double lib_double(double a, float b, int c)
{
    return a * b + c;
}

struct lib_large lib_large(long a)
{
    return (struct lib_large){{a, a + 1, a + 2, a + 3, a + 4, a + 5}};
}

long lib_sum(int n, ...)
{
    va_list list;
    long sum = 0;
    va_start(list, n);
    while (n-- > 0)
        sum += va_arg(list, long);
    va_end(list);
    return sum;
}

int lib_late(int a)
{
    return a ^ 0x55;
}

int lib_taken(int a)
{
    return a + 9;
}

int lib_call(int (*back)(int), int a)
{
    return back(a) + 1;
}

static int chosen(int a)
{
    return a + 3;
}

static int (*choose(void))(int)
{
    return chosen;
}

int lib_chosen(int a) __attribute__((ifunc("choose")));
#endif
