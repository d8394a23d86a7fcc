/*
 * loads MODE LIBRARY...: loads one library after the other and calls a function
 * of each at once, which its constructor has called as well.
 *
 *   each       all, when a line comes on stdin
 *   step       one at each line, and prints "loaded" then
 *   handler    in a signal handler
 *   threads    each in a thread of its own, all at once
 *   namespace  each in a namespace of its own
 *   children   each in a forked child, which ends then
 */
#define _GNU_SOURCE
#include "target.h"
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

static char **libraries;
static int many, calls;
static const char *mode;

static void *load(const char *path)
{
#ifdef __GLIBC__
    if (strcmp(mode, "namespace") == 0)
        return dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
#endif
    return dlopen(path, RTLD_NOW);
}

static void *use(void *number)
{
    int which = (int)(intptr_t)number, (*value)(int);
    void *handle = load(libraries[which]);
    if (!handle)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(handle);
    *(void **)&value = dlsym(handle, "library_value");
    CHECK(value && value(5) == 35 + which);
    __atomic_add_fetch(&calls, 2, __ATOMIC_RELAXED);
    return NULL;
}

static int next;

static void on_signal(int signal)
{
    (void)signal;
    use((void *)(intptr_t)next);
}

static void one(int which)
{
    if (strcmp(mode, "handler") == 0) {
        next = which;
        raise(SIGUSR1);
    } else if (strcmp(mode, "children") == 0) {
        int status;
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            use((void *)(intptr_t)which);
            _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        calls += 2;
    } else
        use((void *)(intptr_t)which);
}

int main(int argc, char **argv)
{
    pthread_t threads[64];
    CHECK(argc > 2 && argc - 2 <= 64);
    mode = argv[1], libraries = argv + 2, many = argc - 2;
    CHECK(signal(SIGUSR1, on_signal) != SIG_ERR);
    target_ready();
    int step = strcmp(mode, "step") == 0, threaded = strcmp(mode, "threads") == 0;
    for (int i = 0; i < many; i++) {
        if (i == 0 || step)
            target_wait_line();
        if (threaded) {
            CHECK(pthread_create(&threads[i], NULL, use, (void *)(intptr_t)i) == 0);
            continue;
        }
        one(i);
        if (step) {
            puts("loaded");
            fflush(stdout);
        }
    }
    for (int i = 0; threaded && i < many; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    puts("all");
    fflush(stdout);
    target_wait_line();
    printf("loads calls=%d ok\n", calls);
    return 0;
}
