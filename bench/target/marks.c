/*
 * What a marker costs, in thread CPU time.
 *
 *   marks             reads "MODE PASSES" lines from stdin until it ends
 *   marks MODE PASSES RUNS
 *
 * and prints nanoseconds per pass for each line or run. Modes:
 *
 *   bare       the loop without any
 *   limit      with rdtsc and one 16-byte store
 *   instant    with a marker without arguments
 *   one, four  with one that has so many integers
 *   span       with a begin and an end
 *   recording  says whether somebody records, as 0 or 1, instead of a time
 *
 * With -DSPALL the spans are Spall's, with -DTRACY Tracy's, and there is nothing else.
 */
#define _GNU_SOURCE
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(SPALL)
#include "spall.h"
static SpallProfile profile;
static SpallBuffer buffer;
#define BEGIN() spall_buffer_begin(&profile, &buffer, "span", 4, (double)__rdtsc())
#define END() spall_buffer_end(&profile, &buffer, (double)__rdtsc())
#define INSTANT(...)
#define RECORDING() 1
#elif defined(TRACY)
#include "tracy/TracyC.h"
#define BEGIN() TracyCZoneN(zone, "span", 1)
#define END() TracyCZoneEnd(zone)
#define INSTANT(...)
#define RECORDING() 1
#else
#include "callreel.h"
#define BEGIN() CALLREEL_BEGIN("span")
#define END() CALLREEL_END()
#define INSTANT(...) CALLREEL_INSTANT(__VA_ARGS__)
#define RECORDING() CALLREEL_RECORDING()
#endif

/* 64 KB: stays in cache, as a ring that is drained does. */
enum { RING = 4096 };
static __m128i ring[RING];

/* The loop's own work is little, so that there is nothing in whose shadow a marker is for free. */
#define LOOP(name, ...)                                                       \
    __attribute__((noipa)) static uint64_t name(uint64_t passes)              \
    {                                                                         \
        uint64_t sum = 0;                                                     \
        for (uint64_t i = 0; i < passes; i++) {                               \
            __VA_ARGS__;                                                      \
            sum += i;                                                         \
            __asm__ volatile("" : "+r"(sum));                                 \
        }                                                                     \
        return sum;                                                           \
    }
LOOP(bare, (void)0)
LOOP(limit, _mm_store_si128(&ring[i % RING], _mm_set_epi64x((long long)__rdtsc(), 1)))
LOOP(instant, INSTANT("instant"))
LOOP(one, INSTANT("one", sum))
LOOP(four, INSTANT("four", sum, i, passes, (int)i))
LOOP(span, BEGIN(); END())

static double thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int measure(const char *mode, uint64_t passes)
{
    static const struct {
        const char *name;
        uint64_t (*run)(uint64_t);
    } modes[] = {{"bare", bare}, {"limit", limit}, {"instant", instant}, {"one", one}, {"four", four}, {"span", span}};
    if (strcmp(mode, "recording") == 0) {
        printf("%d\n", RECORDING());
        fflush(stdout);
        return 0;
    }
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(mode, modes[i].name) != 0)
            continue;
        modes[i].run(passes / 20 + 1); /* the first pages, the caches, the predictors */
        double start = thread_ns();
        volatile uint64_t keep = modes[i].run(passes);
        double took = thread_ns() - start;
        (void)keep;
        printf("%.4f\n", took / (double)passes);
        fflush(stdout);
        return 0;
    }
    return 1;
}

int main(int argc, char **argv)
{
    char line[64], mode[16];
    unsigned long long passes;
#ifdef SPALL
    static char room[1 << 20];
    buffer.data = room;
    buffer.length = sizeof room;
    if (!spall_init_file(getenv("SPALL_OUT"), 1, &profile) || !spall_buffer_init(&profile, &buffer))
        return 2;
#endif
    if (argc == 4) {
        for (int i = 0; i < atoi(argv[3]); i++)
            if (measure(argv[1], strtoull(argv[2], NULL, 10)) != 0)
                return 2;
#ifdef SPALL
        spall_buffer_quit(&profile, &buffer);
        spall_quit(&profile);
#endif
        return 0;
    }
    while (fgets(line, sizeof line, stdin) != NULL)
        if (sscanf(line, "%15s %llu", mode, &passes) != 2 || passes == 0 || measure(mode, passes) != 0)
            return 2;
    return 0;
}
