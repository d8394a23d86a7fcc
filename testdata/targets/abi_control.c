/*
 * How control moves: tail calls, recursion, stacks of unknown size, jumps out of
 * frames, stacks that are switched, callbacks, calls through pointers.
 */
#define _GNU_SOURCE
#include "target.h"
#include "abi.h"
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <string.h>
#ifdef __GLIBC__
#include <ucontext.h>
#endif

/* --- Tail calls: -O2 makes them jumps -------------------------------------- */

uint64_t tail_odd(uint64_t n, uint64_t sum);

TRACED uint64_t tail_even(uint64_t n, uint64_t sum)
{
    if (n == 0)
        return sum;
    return tail_odd(n - 1, sum + n);
}

TRACED uint64_t tail_odd(uint64_t n, uint64_t sum)
{
    if (n == 0)
        return sum + 1;
    return tail_even(n - 1, sum ^ n);
}

typedef uint64_t (*binary)(uint64_t, uint64_t);

TRACED uint64_t add(uint64_t a, uint64_t b) { return a + b; }
TRACED uint64_t multiply(uint64_t a, uint64_t b) { return a * b; }
TRACED uint64_t exclude(uint64_t a, uint64_t b) { return a ^ b; }

static binary volatile operations[] = {add, multiply, exclude};

TRACED uint64_t tail_pointer(uint64_t a, uint64_t b, unsigned which)
{
    return operations[which % 3](a, b);
}

/* --- Recursion ------------------------------------------------------------- */

TRACED uint64_t ackermann(uint64_t m, uint64_t n)
{
    if (m == 0)
        return n + 1;
    if (n == 0)
        return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

int is_odd(unsigned n);

TRACED int is_even(unsigned n)
{
    int r = n == 0 ? 1 : is_odd(n - 1);
    __asm__ volatile("" : "+r"(r)); /* no tail call */
    return r;
}

TRACED int is_odd(unsigned n)
{
    int r = n == 0 ? 0 : is_even(n - 1);
    __asm__ volatile("" : "+r"(r));
    return r;
}

TRACED uint64_t deep(uint64_t n)
{
    if (n == 0)
        return 0;
    uint64_t r = deep(n - 1);
    __asm__ volatile("" : "+r"(r));
    return r + n;
}

static void *deep_thread(void *arg)
{
    CHECK(deep(100000) == 100000ull * 100001 / 2);
    return arg;
}

void abi_deep(void)
{
    pthread_t t;
    pthread_attr_t attr;
    CHECK(pthread_attr_init(&attr) == 0);
    CHECK(pthread_attr_setstacksize(&attr, 64 << 20) == 0);
    CHECK(pthread_create(&t, &attr, deep_thread, NULL) == 0);
    CHECK(pthread_join(t, NULL) == 0);
    CHECK(pthread_attr_destroy(&attr) == 0);
}

/* --- Frames of unknown size ------------------------------------------------ */

TRACED uint64_t fill(unsigned char *p, size_t n, unsigned char c)
{
    memset(p, c, n);
    return n * c;
}

TRACED uint64_t with_alloca(size_t n)
{
    unsigned char *p = alloca(n);
    uint64_t r = fill(p, n, 3);
    for (size_t i = 0; i < n; i++)
        r -= p[i];
    return r;
}

TRACED uint64_t with_vla(size_t n, uint64_t x)
{
    uint64_t v[n], r = 0;
    for (size_t i = 0; i < n; i++)
        v[i] = add(x, i);
    for (size_t i = 0; i < n; i++)
        r += v[i];
    return r;
}

/* --- Jumps out of frames ---------------------------------------------------- */

TRACED void leap(jmp_buf *env)
{
    longjmp(*env, 7);
}

TRACED void jump_from(jmp_buf *env, int depth)
{
    if (depth == 0)
        leap(env);
    else
        jump_from(env, depth - 1);
    __asm__ volatile("");
}

TRACED int jump_out(int depth)
{
    jmp_buf env;
    volatile int before = depth * 2;
    int value = setjmp(env);
    if (value == 0) {
        jump_from(&env, depth);
        return -1;
    }
    return before + value;
}

TRACED int jump_with_mask(int depth)
{
    sigjmp_buf env;
    volatile int times = 0;
    if (sigsetjmp(env, 1) < depth) {
        times++;
        siglongjmp(env, times);
    }
    return times;
}

/* --- Stacks that are switched ------------------------------------------------ */

#ifdef __GLIBC__
#define COROUTINES 3
#ifndef COROUTINE_STACK
#define COROUTINE_STACK (64 << 10)
#endif

static __thread ucontext_t main_context, coroutine[COROUTINES];
static __thread uint64_t produced[COROUTINES];
static __thread unsigned char *stacks;

TRACED void yield(int i)
{
    CHECK(swapcontext(&coroutine[i], &main_context) == 0);
}

TRACED uint64_t produce(int i, uint64_t n)
{
    uint64_t r = add(n, (uint64_t)i);
    if (n % 3 == 1)
        yield(i); /* from a deeper frame */
    return r;
}

static void coroutine_main(int i)
{
    for (uint64_t n = 0; n < 8; n++) {
        produced[i] += produce(i, n);
        yield(i);
    }
}

TRACED void switch_stacks(void)
{
    enum { SIZE = COROUTINE_STACK };
    if (stacks == NULL)
        stacks = malloc(COROUTINES * SIZE);
    CHECK(stacks != NULL);
    for (int i = 0; i < COROUTINES; i++) {
        produced[i] = 0;
        CHECK(getcontext(&coroutine[i]) == 0);
        coroutine[i].uc_stack.ss_sp = stacks + i * SIZE;
        coroutine[i].uc_stack.ss_size = SIZE;
        coroutine[i].uc_link = &main_context;
        makecontext(&coroutine[i], (void (*)(void))coroutine_main, 1, i);
    }
    /* 8 yields, 3 from below (n = 1, 4, 7), and the end. */
    for (int turn = 0; turn < 8 + 3 + 1; turn++)
        for (int i = 0; i < COROUTINES; i++)
            CHECK(swapcontext(&main_context, &coroutine[i]) == 0);
    for (int i = 0; i < COROUTINES; i++)
        CHECK(produced[i] == 28 + 8 * (uint64_t)i);
}
#else
static void switch_stacks(void) {} /* musl has no swapcontext */
#endif

/* --- Callbacks --------------------------------------------------------------- */

TRACED int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

TRACED void sort_and_search(uint64_t *seed)
{
    uint64_t v[64], sum = 0;
    for (int i = 0; i < 64; i++)
        sum += v[i] = target_random(seed);
    uint64_t key = v[17];
    qsort(v, 64, sizeof v[0], by_value);
    for (int i = 0; i < 64; i++) {
        sum -= v[i];
        CHECK(i == 0 || v[i - 1] <= v[i]);
    }
    CHECK(sum == 0);
    uint64_t *found = bsearch(&key, v, 64, sizeof v[0], by_value);
    CHECK(found != NULL && *found == key);
}

/* A jump table, a loop in each arm. */
TRACED uint64_t interpret(const unsigned char *code, uint64_t x)
{
    for (;; code++) {
        switch (*code) {
        case 0: return x;
        case 1: x += 1; break;
        case 2: x *= 3; break;
        case 3: x = add(x, 5); break;
        case 4: x ^= 0xff; break;
        case 5: x = multiply(x, 7); break;
        case 6: x = exclude(x, 0x1234); break;
        case 7: x = x << 3 | x >> 61; break;
        case 8: return tail_pointer(x, 2, 1);
        default: return 0;
        }
    }
}

void abi_control(uint64_t *seed)
{
    uint64_t x = target_random(seed), want = 0;
    for (uint64_t n = 20; n > 0; n--)
        want = n % 2 == 0 ? want + n : want ^ n;
    CHECK(tail_even(20, 0) == want);
    CHECK(tail_pointer(x, 3, 0) == x + 3);
    CHECK(tail_pointer(x, 3, 1) == x * 3);
    CHECK(tail_pointer(x, 3, 2) == (x ^ 3));
    CHECK(ackermann(2, 3) == 9);
    CHECK(is_even(24) && !is_odd(24));
    CHECK(with_alloca(1 + x % 3000) == 0);
    CHECK(with_vla(10, x) == 10 * x + 45);
    CHECK(jump_out(5) == 17);
    CHECK(jump_with_mask(4) == 4);
    switch_stacks();
    sort_and_search(seed);
    static const unsigned char code[] = {1, 2, 3, 4, 5, 6, 7, 8};
    uint64_t y = ((x + 1) * 3 + 5) ^ 0xff;
    y = (y * 7) ^ 0x1234;
    CHECK(interpret(code, x) == (y << 3 | y >> 61) * 2);
}
