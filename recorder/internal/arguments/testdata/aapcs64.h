/*
 * What generated functions are called with and print, see aapcs64_test.go. Each
 * call prints "call NAME", then, of the function itself, "v NAME HEX" for each
 * value of its arguments, of its caller "r NAME HEX" for each of the result, and
 * "dump HEX" with what was in the registers and on the stack.
 */
#ifndef AAPCS64_H
#define AAPCS64_H

typedef unsigned long u64;
typedef unsigned char u8;

#ifdef __cplusplus
extern "C" {
#endif

/* The assembly knows it, and so does the test. */
struct dump {
    u64 x[9], sp, lr, real; /* at the function's entry */
    u8 q[8][16];
    u8 stack[4096];
    u64 rx[2]; /* at its return */
    u8 rq[4][16];
};

/* Calls the function that was given to begin, as it was called itself. */
void thunk(void);
extern void (*volatile through)(void); /* is thunk, which compilers needn't know */
void begin(const char *name, void (*f)(void));
void end(void);
void show(char kind, const char *name, const void *value, u64 size);
/* Fills a value with bytes that differ from call to call. */
void fill(void *value, u64 size);

#ifdef __cplusplus
}
#endif

#define CALLED __attribute__((noinline, used))
#endif
