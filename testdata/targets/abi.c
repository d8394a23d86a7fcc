/*
 * abi [ROUNDS]: every way of the System V AMD64 ABI to pass values and to move
 * control, in calls that a recorder patches, until stdin ends or ROUNDS rounds
 * are made (they start when a line comes on stdin). This file: values.
 */
#define _GNU_SOURCE
#include "target.h"
#include "abi.h"
#include <complex.h>
#include <stdarg.h>
#include <string.h>

typedef unsigned __int128 u128;

/* --- Arguments: beyond the registers they lie on the stack ----------------- */

TRACED uint64_t many_ints(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g,
                          uint64_t h, uint64_t i, uint8_t j, uint16_t k, uint32_t l)
{
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k + 12 * (uint64_t)l;
}

TRACED double many_doubles(double a, double b, double c, double d, double e, double f, double g, double h, double i,
                           float j)
{
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j;
}

TRACED double mixed(int a, double b, long c, float d, char e, long double f, const char *g, u128 h)
{
    return a + b + c + d + e + (double)f + g[0] + (double)(uint64_t)(h >> 64);
}

/* --- Results, one for each class of ABI §3.2.3 ---------------------------- */

struct pair_ii { uint64_t a, b; };                 /* rax:rdx */
struct pair_dd { double a, b; };                   /* xmm0:xmm1 */
struct pair_id { uint64_t a; double b; };          /* rax:xmm0 */
struct pair_di { double a; uint64_t b; };          /* xmm0:rax */
struct big { uint64_t v[9]; };                     /* memory, its address in rax */
struct floats { float a, b, c; };                  /* xmm0:xmm1, packed */
struct odd { char c[13]; };                        /* rax:rdx, partly */
typedef int v8si __attribute__((vector_size(32)));

TRACED struct pair_ii return_ii(uint64_t x) { return (struct pair_ii){x * 3, ~x}; }
TRACED struct pair_dd return_dd(double x) { return (struct pair_dd){x * 3, -x}; }
TRACED struct pair_id return_id(uint64_t x) { return (struct pair_id){x * 5, (double)(x & 0xffff) / 2}; }
TRACED struct pair_di return_di(uint64_t x) { return (struct pair_di){(double)(x & 0xffff) / 4, x * 7}; }
TRACED struct floats return_floats(float x) { return (struct floats){x, x + 1, x + 2}; }
TRACED long double return_ld(long double x) { return x * 3 + 1; }
TRACED _Complex double return_cd(double x) { return x + 2 * x * I; }
TRACED _Complex float return_cf(float x) { return x - x * I; }
TRACED _Complex long double return_cld(long double x) { return x + (x + 1) * I; }
TRACED u128 return_u128(uint64_t x) { return (u128)x * x; }
TRACED float return_float(float x) { return x / 2; }
TRACED _Bool return_bool(uint64_t x) { return x & 1; }
TRACED void return_void(uint64_t *x) { *x += 1; }

TRACED struct big return_big(uint64_t x)
{
    struct big b;
    for (int i = 0; i < 9; i++)
        b.v[i] = x + (uint64_t)i * i;
    return b;
}

TRACED struct odd return_odd(uint64_t x)
{
    struct odd o;
    for (int i = 0; i < 13; i++)
        o.c[i] = (char)(x >> i);
    return o;
}

TRACED uint64_t take_big(int a, struct big b, struct pair_id c)
{
    return b.v[8] + (uint64_t)a + c.a + (uint64_t)c.b;
}

__attribute__((noipa, target("avx2"))) v8si return_vector(v8si a, v8si b)
{
    return a + b;
}

__attribute__((target("avx2"))) static void check_vector(uint64_t x)
{
    v8si a, b, c;
    for (int i = 0; i < 8; i++)
        a[i] = (int)(x >> i & 0xffff), b[i] = i * 1000;
    c = return_vector(a, b);
    for (int i = 0; i < 8; i++)
        CHECK(c[i] == a[i] + b[i]);
}

/* --- Variadics: al tells how many vector registers hold arguments ---------- */

TRACED uint64_t sum_ints(int n, ...)
{
    uint64_t sum = 0;
    va_list ap;
    va_start(ap, n);
    for (int i = 0; i < n; i++)
        sum += va_arg(ap, uint64_t) * (uint64_t)(i + 1);
    va_end(ap);
    return sum;
}

TRACED double sum_mixed(const char *kinds, ...)
{
    double sum = 0;
    va_list ap;
    va_start(ap, kinds);
    for (; *kinds; kinds++) {
        if (*kinds == 'd')
            sum += va_arg(ap, double);
        else if (*kinds == 'L')
            sum += (double)va_arg(ap, long double);
        else
            sum += va_arg(ap, int);
    }
    va_end(ap);
    return sum;
}

static void check_variadics(uint64_t x)
{
    char text[200];
    uint64_t y = x & 0xffff;
    CHECK(sum_ints(8, y, y, y, y, y, y, y, y) == 36 * y);
    CHECK(sum_mixed("idididididididididid", 1, 0.5, 2, 0.5, 3, 0.5, 4, 0.5, 5, 0.5, 6, 0.5, 7, 0.5, 8, 0.5, 9, 0.5, 10,
                    0.5) == 60);
    CHECK(sum_mixed("") == 0);
    CHECK(sum_mixed("iLd", 1, 2.5L, 3.25) == 6.75);
    snprintf(text, sizeof text, "%d %.3f %s %.2Lf %llx", (int)y, (double)y / 8, "text", (long double)y / 4,
             (unsigned long long)x);
    int a;
    double b;
    long double c;
    unsigned long long d;
    CHECK(sscanf(text, "%d %lf text %Lf %llx", &a, &b, &c, &d) == 4);
    CHECK(a == (int)y && b == (double)y / 8 && c == (long double)y / 4 && d == x);
}

/* --- -fipa-ra: the caller keeps values in scratch registers that it has seen
 * the callee leave alone. These are static and not noipa on purpose. -------- */

static uint64_t ipa_sink;

static __attribute__((noinline, noclone)) uint64_t ipa_callee(uint64_t x)
{
    __asm__ volatile("" : "+r"(x));
    return x + ipa_sink;
}

TRACED uint64_t ipa_caller(const uint64_t *v)
{
    uint64_t a = v[0], b = v[1], c = v[2], d = v[3], e = v[4], f = v[5];
    double g = (double)(v[6] & 0xfff), h = (double)(v[7] & 0xfff);
    uint64_t r = ipa_callee(a);
    r += ipa_callee(b) * 3;
    r ^= ipa_callee(c ^ d);
    return r + a * 5 + b * 7 + c * 11 + d * 13 + e * 17 + f * 19 + (uint64_t)(g * h);
}

static void check_ipa(uint64_t *seed)
{
    uint64_t v[8];
    for (int i = 0; i < 8; i++)
        v[i] = target_random(seed);
    uint64_t r = (v[0] + v[1] * 3) ^ (v[2] ^ v[3]);
    r += v[0] * 5 + v[1] * 7 + v[2] * 11 + v[3] * 13 + v[4] * 17 + v[5] * 19;
    CHECK(ipa_caller(v) == r + (v[6] & 0xfff) * (v[7] & 0xfff));
}

/* --- Code chosen by the loader ------------------------------------------- */

static uint64_t chosen_impl(uint64_t x)
{
    return x * 31;
}

#ifdef __GLIBC__
static uint64_t (*choose(void))(uint64_t)
{
    return chosen_impl;
}

uint64_t chosen(uint64_t x) __attribute__((ifunc("choose")));
#else
TRACED uint64_t chosen(uint64_t x)
{
    return chosen_impl(x);
}
#endif

static void check_results(uint64_t x)
{
    double d = (double)(x & 0xffffff);
    uint64_t y = x;
    struct pair_ii ii = return_ii(x);
    struct pair_dd dd = return_dd(d);
    struct pair_id id = return_id(x);
    struct pair_di di = return_di(x);
    struct floats fl = return_floats((float)(x & 0xfff));
    struct big big = return_big(x);
    struct odd odd = return_odd(x);
    _Complex double cd = return_cd(d);
    _Complex float cf = return_cf(3);
    _Complex long double cld = return_cld(d);

    CHECK(ii.a == x * 3 && ii.b == ~x);
    CHECK(dd.a == d * 3 && dd.b == -d);
    CHECK(id.a == x * 5 && id.b == (double)(x & 0xffff) / 2);
    CHECK(di.b == x * 7 && di.a == (double)(x & 0xffff) / 4);
    CHECK(fl.a == (float)(x & 0xfff) && fl.b == fl.a + 1 && fl.c == fl.a + 2);
    for (int i = 0; i < 9; i++)
        CHECK(big.v[i] == x + (uint64_t)i * i);
    for (int i = 0; i < 13; i++)
        CHECK(odd.c[i] == (char)(x >> i));
    CHECK(creal(cd) == d && cimag(cd) == 2 * d);
    CHECK(crealf(cf) == 3 && cimagf(cf) == -3);
    CHECK(creall(cld) == (long double)d && cimagl(cld) == (long double)d + 1);
    CHECK(return_ld((long double)d) == (long double)d * 3 + 1);
    CHECK(return_u128(x) == (u128)x * x);
    CHECK(return_float((float)(x & 0xfff)) == (float)(x & 0xfff) / 2);
    CHECK(return_bool(x) == (x & 1));
    return_void(&y);
    CHECK(y == x + 1);
    CHECK(take_big(3, big, (struct pair_id){x, 7}) == x + 64 + 3 + x + 7);
}

void abi_values(uint64_t *seed)
{
    uint64_t x = target_random(seed);
    CHECK(many_ints(x, x, x, x, x, x, x, x, x, (uint8_t)x, (uint16_t)x, (uint32_t)x) ==
          45 * x + 10 * (uint64_t)(uint8_t)x + 11 * (uint64_t)(uint16_t)x + 12 * (uint64_t)(uint32_t)x);
    CHECK(many_doubles(1, 2, 3, 4, 5, 6, 7, 8, 9, 10) == 385);
    CHECK(mixed(1, 2, 3, 4, 5, 6, "A", (u128)7 << 64) == 28 + 'A');
    check_results(x);
    if (__builtin_cpu_supports("avx2"))
        check_vector(x);
    check_variadics(x);
    check_ipa(seed);
    CHECK(chosen(x) == x * 31);
}

int main(int argc, char **argv)
{
    uint64_t most = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    uint64_t seed = 1, rounds = 0, signals;

    target_ready();
    if (most)
        target_wait_line();
    abi_signals_start();
    do {
        for (int i = 0; i < 50; i++) {
            abi_values(&seed);
            abi_control(&seed);
        }
        signals = abi_signals_round();
        if (rounds % 64 == 0)
            abi_deep();
        rounds++;
    } while (most ? rounds < most : !target_told_to_stop());
    abi_signals_stop();
    if (most) {
        printf("counted rounds=%llu ok\n", (unsigned long long)rounds);
        fflush(stdout);
        target_wait_line();
    }
    printf("abi rounds=%llu signals=%llu ok\n", (unsigned long long)rounds, (unsigned long long)signals);
    return 0;
}
