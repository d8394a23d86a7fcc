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
 */
#define _GNU_SOURCE
#include "target.h"
#include <dlfcn.h>
#include <link.h>
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

int main(int argc, char **argv)
{
    CHECK(argc == 4);
    const char *mode = argv[1];
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
