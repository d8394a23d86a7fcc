/*
 * deep [busy]: a chain of 60 C++ functions with frames of different sizes. Each
 * notes the address that it will return to in deep_shadow. The innermost one
 * prints "ready" and waits for stdin to end, or calls spin over and over until
 * then.
 */
#include "target.h"

extern "C" {
void *deep_shadow[64];
volatile int deep_depth;
}

namespace deep {

static bool busy;

TRACED uint64_t spin(uint64_t x)
{
    return x * 3 + 1;
}

TRACED uint64_t bottom(uint64_t x)
{
    target_ready();
    if (busy)
        while (!target_told_to_stop())
            for (int i = 0; i < 1000; i++)
                x += spin(x);
    else
        target_wait_line();
    return x;
}

template <int N> struct level {
    /* Some levels keep more registers, some more memory. */
    __attribute__((noipa)) uint64_t call(uint64_t a, uint64_t b) const
    {
        deep_shadow[deep_depth] = __builtin_return_address(0);
        deep_depth = deep_depth + 1;
        volatile uint64_t room[N % 7 * 5 + 1];
        room[0] = a;
        uint64_t r = level<N - 1>().call(a + b, b ^ N) * (a | 1) + b + room[0];
        deep_depth = deep_depth - 1;
        return r;
    }
};

template <> struct level<0> {
    __attribute__((noipa)) uint64_t call(uint64_t a, uint64_t b) const { return bottom(a ^ b); }
};

}

int main(int argc, char **)
{
    deep::busy = argc > 1;
    uint64_t r = deep::level<60>().call(1, 2);
    printf("deep result=%d ok\n", r != 0);
    return 0;
}
