/*
 * loading MODE LIBRARY1 LIBRARY2: calls functions of libraries that come and
 * go, and checks what they return.
 *
 *   swap    loads one and the other in turn, until stdin ends. They are of the
 *           same shape, so one comes to stand where the other was.
 *   unload  calls the first, and once more when a line comes on stdin; unloads it,
 *           prints "unloaded" and waits for the end of stdin
 *   replace the same, but then the second is loaded, called and must stand where
 *           the first was: "unloaded" is printed when it does
 *   data    the same, but memory of its own takes the first's place, and must
 *           keep what it holds
 *   late    loads the first only when a line comes on stdin, prints "loaded" when
 *           it has called it, and goes on calling it. At the next line it unloads
 *           it and prints "unloaded", and so on.
 *   churn   four threads: three call functions of the program all the time, one
 *           loads and unloads both libraries as "swap" does, each for long enough
 *           to be noticed
 */
#define _GNU_SOURCE
#include "target.h"
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum { SIZE = 5 * 4096, PATTERN = 0x5a };

static uint64_t calls, loads;

struct library {
    void *handle;
    char *base;
    int which;
    int (*value)(int);
};

static struct library load(const char *path, int which)
{
    struct library l = {.which = which};
    struct link_map *map;
    l.handle = dlopen(path, RTLD_NOW);
    if (!l.handle)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(l.handle);
    CHECK(dlinfo(l.handle, RTLD_DI_LINKMAP, &map) == 0);
    l.base = (char *)map->l_addr;
    *(void **)&l.value = dlsym(l.handle, "library_value");
    CHECK(l.value);
    loads++;
    return l;
}

static void use(const struct library *l)
{
    for (int i = 0; i < 200; i++, calls++)
        CHECK(l->value(i) == i * 7 + l->which);
    usleep(200);
}

static void check_data(const unsigned char *p)
{
    for (int i = 0; i < SIZE; i++)
        CHECK(p[i] == PATTERN);
    usleep(200);
}

TRACED int steady_work(int x)
{
    return x * 3 + 1;
}

static void *work(void *told)
{
    uint64_t n = 0;
    while (!*(volatile int *)told)
        for (int i = 0; i < 1000; i++, n++)
            CHECK(steady_work(i) == i * 3 + 1);
    return NULL;
}

/* Waits for a line on stdin, and says whether one came. */
static int next_line(void)
{
    char c;
    while (read(0, &c, 1) == 1)
        if (c == '\n')
            return 1;
    return 0;
}

static int late(char **argv)
{
    target_ready();
    while (next_line()) {
        struct library l = load(argv[2], 1);
        use(&l);
        puts("loaded");
        fflush(stdout);
        while (!target_told_to_stop())
            use(&l);
        if (!next_line())
            break;
        CHECK(dlclose(l.handle) == 0);
        puts("unloaded");
        fflush(stdout);
    }
    printf("loading calls=%llu loads=%llu ok\n", (unsigned long long)calls, (unsigned long long)loads);
    return 0;
}

static int churn(char **argv)
{
    enum { WORKERS = 3 };
    pthread_t t[WORKERS];
    int told = 0;
    for (int i = 0; i < WORKERS; i++)
        CHECK(pthread_create(&t[i], NULL, work, &told) == 0);
    target_ready();
    for (int which = 1; !target_told_to_stop(); which = 3 - which) {
        struct library l = load(argv[1 + which], which);
        for (uint64_t k = 0; k < 10 * (loads % 10); k++)
            use(&l);
        CHECK(dlclose(l.handle) == 0);
    }
    *(volatile int *)&told = 1;
    for (int i = 0; i < WORKERS; i++)
        CHECK(pthread_join(t[i], NULL) == 0);
    printf("loading calls=%llu loads=%llu ok\n", (unsigned long long)calls, (unsigned long long)loads);
    return 0;
}

int main(int argc, char **argv)
{
    CHECK(argc == 4);
    const char *mode = argv[1];
    if (strcmp(mode, "late") == 0)
        return late(argv);
    if (strcmp(mode, "churn") == 0)
        return churn(argv);
    struct library l = load(argv[2], 1);

    use(&l);
    target_ready();
    while (!target_told_to_stop()) {
        use(&l);
        if (strcmp(mode, "swap") == 0) {
            int next = 3 - l.which;
            CHECK(dlclose(l.handle) == 0);
            l = load(argv[1 + next], next);
        }
    }
    if (strcmp(mode, "swap") != 0) {
        char *base = l.base;
        target_wait_line();
        use(&l); /* with whoever looks on now */
        CHECK(dlclose(l.handle) == 0);
        if (strcmp(mode, "replace") == 0) {
            l = load(argv[3], 2);
            CHECK(l.base == base);
        } else if (strcmp(mode, "data") == 0) {
            char *p = mmap(base, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
            CHECK(p == base);
            memset(p, PATTERN, SIZE);
        }
        puts("unloaded");
        fflush(stdout);
        while (!target_told_to_stop()) {
            if (strcmp(mode, "replace") == 0)
                use(&l);
            else if (strcmp(mode, "data") == 0)
                check_data((unsigned char *)base);
            else
                usleep(200);
        }
    }
    printf("loading calls=%llu loads=%llu ok\n", (unsigned long long)calls, (unsigned long long)loads);
    return 0;
}
