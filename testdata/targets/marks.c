/*
 * marks THREADS ROUNDS: each thread passes markers of every kind of argument,
 * and counts them. It starts when a line comes on stdin, or its end, prints
 * "counted …" when all is done, and stays until stdin ends. With ROUNDS 0 it
 * goes on until then.
 *
 * What each argument is follows from the round i, so that a test can tell:
 * see the comments. The last line has the counts, and the semaphore.
 */
#include "marks.h"
#include "target.h"
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

SEMAPHORE(marks_guarded_semaphore);

static uint64_t rounds;
int marks_global = 77;
uint16_t marks_numbers[2] = {7, 8};
static volatile int marks_static;
static atomic_ullong total, guarded;

struct pair {
    int first;
    const char *second;
};

/* Leaf functions without a frame: their variables are below the stack pointer. */
TRACED uint64_t leaf(uint64_t i)
{
    volatile uint64_t a = i * 3, b = i ^ 0x5555, c = ~i;
    __asm__ volatile(MARK(MARK_NOP, "marks", "leaf", "0", "8@%[i] 8@%[a] -8@%[b]") ::[i] "r"(i), [a] "m"(a), [b] "m"(b));
    return a + b + c;
}

/* Numbers of all sizes: i as u8, s16, u32, s64; constants; globals. */
TRACED void sizes(uint64_t i)
{
    uint8_t u8 = i;
    int16_t s16 = -(int16_t)i;
    uint32_t u32 = i * 0x10001;
    int64_t s64 = -(int64_t)i;
    double d = i / 2.0;
    marks_static = i;
#ifdef __x86_64__
    __asm__ volatile(MARK(MARK_NOP5, "marks", "sizes", "0",
                          "1@%b[u8] -2@%w[s16] 4@%k[u32] -8@%[s64] -4@$-12 8f@%[d] -4@marks_global(%%rip) -4@marks_static+0(%%rip)")
                     ::[u8] "r"(u8), [s16] "r"(s16), [u32] "r"(u32), [s64] "r"(s64), [d] "x"(d));
#else
    __asm__ volatile(MARK(MARK_NOP5, "marks", "sizes", "0",
                          "1@%w[u8] -2@%w[s16] 4@%w[u32] -8@%[s64] -4@-12 8f@%d[d] -4@[%[global]] -4@[%[of_all]]")
                     ::[u8] "r"(u8), [s16] "r"(s16), [u32] "r"(u32), [s64] "r"(s64), [d] "w"(d), [global] "r"(&marks_global), [of_all] "r"(&marks_static));
#endif
}

/* A string, and what a pointer leads to; every 16th pointer is bad. */
TRACED void strings(uint64_t i)
{
    char text[32];
    struct pair p = {(int)i, text};
    struct pair *at = i % 16 == 15 ? (struct pair *)8 : &p;
    uint64_t last = i % 4, table[4] = {i, i + 1, i + 2, i + 3};
    snprintf(text, sizeof text, "round %llu", (unsigned long long)i);
#ifdef __x86_64__
    __asm__ volatile(MARK(MARK_NOP, "marks", "strings", "0", "8@%[text] -4@(%[at]) 8@8(%[at])") ::[text] "r"(text), [at] "r"(at) : "memory");
    __asm__ volatile(MARK(MARK_NOP, "marks", "indexed", "0", "8@(%[table],%[last],8) -4@-8(%[after],%[last],8) 2@marks_numbers(%%rip)")
                     ::[table] "r"(table), [after] "r"(table + 1), [last] "r"(last) : "memory");
#else
    __asm__ volatile(MARK(MARK_NOP, "marks", "strings", "0", "8@%[text] -4@[%[at]] 8@[%[at], 8]") ::[text] "r"(text), [at] "r"(at) : "memory");
    __asm__ volatile(MARK(MARK_NOP, "marks", "indexed", "0", "8@[%[table], %[last]] -4@[%[element], -8] 2@[%[numbers]]")
                     ::[table] "r"(table), [last] "r"(last * 8), [element] "r"(table + 1 + last), [numbers] "r"(marks_numbers) : "memory");
#endif
}

/* Passed only while somebody wants to know. */
TRACED void guard(uint64_t i)
{
    if (__builtin_expect(marks_guarded_semaphore, 0)) {
        __asm__ volatile(MARK(MARK_NOP, "marks", "guarded", "marks_guarded_semaphore", "8@%[i]") ::[i] "r"(i));
        atomic_fetch_add(&guarded, 1);
    }
}

TRACED void request(uint64_t i)
{
    __asm__ volatile(MARK(MARK_NOP, "marks", "request__start", "0", "8@%[i]") ::[i] "r"(i));
    leaf(i);
    sizes(i);
    __asm__ volatile(MARK(MARK_NOP5, "marks", "request__done", "0", "8@%[i]") ::[i] "r"(i));
}

static void *run(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; rounds ? i < rounds : !target_told_to_stop(); i++) {
        request(i);
        strings(i);
        guard(i);
        atomic_fetch_add(&total, 1);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 1;
    rounds = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
    pthread_t threads[64];

    CHECK(n >= 1 && n <= 64);
    target_ready();
    if (rounds)
        target_wait_line();
    for (int i = 0; i < n; i++)
        CHECK(pthread_create(&threads[i], NULL, run, NULL) == 0);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    printf("counted rounds=%llu guarded=%llu\n", (unsigned long long)total, (unsigned long long)guarded);
    fflush(stdout);
    if (rounds)
        target_wait_line();
    printf("marks rounds=%llu guarded=%llu semaphore=%u ok\n", (unsigned long long)total, (unsigned long long)guarded, marks_guarded_semaphore);
    return 0;
}
