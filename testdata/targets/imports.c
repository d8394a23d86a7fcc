/*
 * imports MODE [N]: calls the functions of a library, see imports_library.c, and checks what they return.
 *
 *   count N  waits for a line, makes N rounds in each of three threads and prints "counted" and how often it has called each function
 *   busy     makes rounds in three threads until stdin ends
 *   hook     makes rounds until stdin ends; at a line it leads its own slot of lib_add to a function of its own, which goes on to what the slot
 *            led to, and prints "hooked"
 */
#define _GNU_SOURCE
#include "target.h"
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <string.h>
#include <sys/mman.h>

struct lib_large {
    long v[6];
};
int lib_add(int, int), lib_mul(int, int), lib_late(int), lib_taken(int), lib_call(int (*)(int), int), lib_chosen(int);
long lib_stack(long, long, long, long, long, long, long, long, long, long), lib_sum(int, ...);
double lib_double(double, float, int);
struct lib_large lib_large(long);

static uint64_t add, mul, stack, doubles, large, sum, late, taken, call, chosen, thrown;
static int with_late;

#define COUNT(n) __atomic_add_fetch(&(n), 1, __ATOMIC_RELAXED)

static TRACED int tail(int a)
{
    COUNT(add);
    return lib_add(a, 7);
}

static TRACED int back(int a)
{
    COUNT(mul);
    return lib_mul(a, 3);
}

static __thread jmp_buf out;

static TRACED int back_out(int a)
{
    longjmp(out, a);
}

static TRACED void round_of(int i)
{
    int (*volatile pointer)(int) = lib_taken;
    COUNT(add);
    CHECK(lib_add(i, 5) == i + 5);
    CHECK(tail(i) == i + 7);
    COUNT(stack);
    CHECK(lib_stack(i, 1, 2, 3, 4, 5, 6, 7, 8, 9) == i + 2 + 6 + 12 + 20 + 30 + 42 + 56 + 72 + 90);
    COUNT(doubles);
    CHECK(lib_double(i, 0.5f, 2) == i * 0.5 + 2);
    COUNT(large);
    CHECK(lib_large(i).v[5] == i + 5);
    COUNT(sum);
    CHECK(lib_sum(8, 1l, 2l, 3l, 4l, 5l, 6l, 7l, (long)i) == 28 + i);
    COUNT(taken);
    CHECK(pointer(i) == i + 9);
    COUNT(call);
    CHECK(lib_call(back, i) == i * 3 + 1);
    COUNT(chosen);
    CHECK(lib_chosen(i) == i + 3);
    if (i % 16 == 1) {
        COUNT(thrown);
        if (setjmp(out) == 0) {
            lib_call(back_out, i);
            CHECK(!"lib_call has returned");
        }
    }
    if (with_late) {
        COUNT(late);
        CHECK(lib_late(i) == (i ^ 0x55));
    }
}

static int rounds;
static volatile int ending;

static void *work(void *unused)
{
    (void)unused;
    for (int i = 0; rounds ? i < rounds : !ending; i++) {
        round_of(i & 0xffff);
        if (!rounds && i % 64 == 0)
            usleep(500);
    }
    return NULL;
}

static void **slot_of(const char *name)
{
    Elf64_Rela *rela = NULL;
    Elf64_Sym *symbols = NULL;
    const char *strings = NULL;
    size_t size = 0;
    struct link_map *map = dlopen(NULL, RTLD_NOW);
    for (Elf64_Dyn *d = map->l_ld; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_JMPREL)
            rela = (void *)d->d_un.d_ptr;
        else if (d->d_tag == DT_PLTRELSZ)
            size = d->d_un.d_val;
        else if (d->d_tag == DT_SYMTAB)
            symbols = (void *)d->d_un.d_ptr;
        else if (d->d_tag == DT_STRTAB)
            strings = (void *)d->d_un.d_ptr;
    }
    for (size_t i = 0; i < size / sizeof *rela; i++)
        if (strcmp(strings + symbols[ELF64_R_SYM(rela[i].r_info)].st_name, name) == 0)
            return (void **)(map->l_addr + rela[i].r_offset);
    return NULL;
}

static int (*before)(int, int);

static int hooked_add(int a, int b)
{
    return before(a, b);
}

static void hook(void)
{
    void **slot = slot_of("lib_add");
    CHECK(slot);
    void *page = (void *)((uintptr_t)slot & -4096ul);
    CHECK(mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0);
    *(void **)&before = *slot;
    *slot = (void *)hooked_add;
}

int main(int argc, char **argv)
{
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    CHECK(argc > 1);
    target_ready();
    if (strcmp(argv[1], "count") == 0) {
        CHECK(argc > 2);
        rounds = atoi(argv[2]);
        with_late = 1;
        target_wait_line();
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
    if (strcmp(argv[1], "hook") == 0) {
        target_wait_line();
        hook();
        puts("hooked");
        fflush(stdout);
    }
    if (!rounds) {
        while (!target_told_to_stop())
            usleep(1000);
        ending = 1;
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    printf("counted add=%lu mul=%lu stack=%lu doubles=%lu large=%lu sum=%lu late=%lu taken=%lu call=%lu chosen=%lu thrown=%lu ok\n", add, mul, stack,
           doubles, large, sum, late, taken, call, chosen, thrown);
    fflush(stdout);
    if (rounds)
        target_wait_line();
    return 0;
}
