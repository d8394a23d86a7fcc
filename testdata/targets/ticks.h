/* The clock that stubs read, of which no reading comes before or behind what is next to it in the program. */
#ifndef TICKS_H
#define TICKS_H

#include <stdint.h>

#ifdef __aarch64__
static inline uint64_t ticks(void)
{
    uint64_t t;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(t)::"memory");
    return t;
}
#else
#include <x86intrin.h>

static inline uint64_t ticks(void)
{
    _mm_lfence();
    uint64_t t = __rdtsc();
    _mm_lfence();
    return t;
}
#endif

#endif
