/*
 * shapes_of_frames: calls functions whose frames differ in every way that a
 * compiler knows, over and over, until stdin ends: leaves, recursion, many saved
 * registers, alloca, frames that are aligned to 64 bytes, variable arguments, big
 * results, tail calls, callbacks from the C library, and calls through the PLT. It
 * makes no system call but one in some ten thousand rounds, so that it can be
 * stepped through.
 */
#include "target.h"

#include <alloca.h>
#include <stdarg.h>
#include <string.h>

struct big { uint64_t v[20]; };

volatile uint64_t sink;

TRACED uint64_t leaf(uint64_t x) { return x * 5 + 3; }

TRACED uint64_t recursive(uint64_t n, uint64_t x) { return n ? recursive(n - 1, x + n) + x : leaf(x); }

TRACED uint64_t many_registers(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h)
{
    uint64_t s = leaf(a), t = leaf(b), u = leaf(c), v = leaf(d);
    return leaf(s + t) + leaf(u + v) + leaf(e + f) + leaf(g + h) + a * b * c * d + s * t * u * v;
}

TRACED uint64_t dynamic_room(uint64_t n)
{
    uint64_t *p = alloca(n * sizeof *p);
    for (uint64_t i = 0; i < n; i++)
        p[i] = leaf(i);
    return p[n - 1] + p[0];
}

TRACED uint64_t touch(uint64_t *p) { return p[0] += leaf(p[1]); }

TRACED uint64_t aligned_room(uint64_t n)
{
    _Alignas(64) uint64_t room[16] = {n, n + 1};
    CHECK(((uintptr_t)room & 63) == 0);
    return touch(room);
}

TRACED uint64_t aligned_and_dynamic(uint64_t n)
{
    _Alignas(64) uint64_t room[16] = {n, n + 1};
    uint64_t *p = alloca(n * sizeof *p + 8);
    p[0] = touch(room);
    return touch(room) + p[0];
}

TRACED uint64_t variable(int n, ...)
{
    va_list list;
    uint64_t sum = 0;
    va_start(list, n);
    while (n-- > 0)
        sum += leaf(va_arg(list, uint64_t));
    va_end(list);
    return sum;
}

TRACED struct big big_result(uint64_t x)
{
    struct big b;
    for (int i = 0; i < 20; i++)
        b.v[i] = leaf(x + i);
    return b;
}

TRACED uint64_t tail(uint64_t x) { return leaf(x + 1); }

TRACED uint64_t red_zone(uint64_t x)
{
    volatile uint64_t room[8];
    for (int i = 0; i < 8; i++)
        room[i] = x + i;
    return room[3] * room[5];
}

TRACED double floats(double a, double b)
{
    double s = a * b;
    return s + (double)leaf((uint64_t)s) / a;
}

TRACED int by_value(const void *a, const void *b)
{
    uint64_t x = leaf(*(const uint64_t *)a), y = leaf(*(const uint64_t *)b);
    return x < y ? -1 : x > y;
}

TRACED uint64_t early_exit(uint64_t x)
{
    if (x & 1)
        return leaf(x) + leaf(x >> 1);
    if (x & 2)
        return 7;
    return leaf(x) * leaf(x + 2) + leaf(x + 4);
}

TRACED uint64_t library(uint64_t x)
{
    uint64_t list[8];
    char text[64];
    for (int i = 0; i < 8; i++)
        list[i] = x * (i * 7 + 3) % 11;
    qsort(list, 8, sizeof *list, by_value);
    snprintf(text, sizeof text, "%llu %s %5.2f", (unsigned long long)list[3], "text", (double)x);
    return strlen(text) + strtoull(text, NULL, 10);
}

TRACED uint64_t round_of(uint64_t x)
{
    uint64_t sum = recursive(x % 6, x);
    sum += many_registers(x, 1, 2, 3, 4, 5, 6, 7);
    sum += dynamic_room(x % 9 + 1);
    sum += aligned_room(x);
    sum += aligned_and_dynamic(x % 5);
    sum += variable(3, x, x + 1, x + 2);
    sum += big_result(x).v[7];
    sum += tail(x);
    sum += red_zone(x);
    sum += (uint64_t)floats((double)x + 1, 3);
    sum += early_exit(x);
    sum += library(x);
    return sum;
}

int main(void)
{
    uint64_t rounds = 0;
    target_ready();
    do
        for (int i = 0; i < 20000; i++)
            sink += round_of(rounds++);
    while (!target_told_to_stop());
    printf("shapes rounds=%llu ok\n", (unsigned long long)rounds);
    return 0;
}
