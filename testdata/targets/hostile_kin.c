/*
 * hostile_kin registry|exec PID…: a process that is recorded with its children,
 * and says that PIDs are children of its: in the registry of threads that wrote
 * for the first time, or in requests to be watched while the program is replaced.
 * A PID of "recorder" is the recorder itself and each of its threads. The layout
 * of the ring memory comes by -D.
 */
#define _GNU_SOURCE
#include "hostile.h"
#include <dirent.h>
#include <linux/futex.h>
#include <setjmp.h>

static sigjmp_buf gone;
static char *ring;
static uint64_t forged;

static void registers(uint32_t pid, uint32_t tid)
{
    _Atomic uint64_t *count = (void *)(ring + HDR_REGISTERED);
    uint64_t n = (*count)++;
    char *entry = ring + REGISTRY_OFF + n % REGISTRY_SIZE * REGISTRY_ENTRY;
    memcpy(entry + REG_PID, &pid, 4);
    memcpy(entry + REG_NAME, "kin", 4);
    __atomic_store_n((uint32_t *)(entry + REG_TID), tid, __ATOMIC_SEQ_CST);
}

static void asks(uint32_t pid, uint32_t tid)
{
    uint32_t *count = (void *)(ring + HDR_EXECS);
    static uint32_t next;
    char *entry = ring + EXECS_OFF + ((next++ % EXEC_SLOTS) << EXEC_SHIFT);
    memcpy(entry + EXEC_TID, &tid, 4);
    memcpy(entry + EXEC_PID, &pid, 4);
    __atomic_store_n((uint32_t *)(entry + EXEC_STATE), EXEC_ASKED, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, count, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* The recorder takes its memory away when it likes. */
static void fault(int sig)
{
    if (!ring)
        _exit(128 + sig);
    siglongjmp(gone, 1);
}

int main(int argc, char **argv)
{
    static uint64_t sum;
    CHECK(argc > 2);
    void (*forge)(uint32_t, uint32_t) = strcmp(argv[1], "exec") ? registers : asks;
    CHECK(signal(SIGSEGV, fault) != SIG_ERR && signal(SIGBUS, fault) != SIG_ERR);
    target_ready();
    for (uint64_t i = 0; !target_told_to_stop(); i++) {
        struct region r;
        ring = NULL;
        sum += hostile_work(i);
        sleep_us(5000);
        if (!find_region(&r, "/memfd:callreel") || sigsetjmp(gone, 1))
            continue;
        ring = (char *)r.start;
        for (int k = 2; k < argc; k++) {
            if (strcmp(argv[k], "recorder")) {
                uint32_t pid = (uint32_t)atoi(argv[k]);
                forge(pid, pid);
                forged++;
                continue;
            }
            uint32_t pid;
            char path[64];
            struct dirent *e;
            if (!find_region(&r, "/memfd:callreel-recovery"))
                continue;
            memcpy(&pid, (char *)r.start + 16, 4); /* see forged */
            snprintf(path, sizeof path, "/proc/%u/task", pid);
            DIR *d = opendir(path);
            while (d && (e = readdir(d)))
                forge(pid, (uint32_t)atoi(e->d_name)), forge((uint32_t)atoi(e->d_name), pid);
            if (d)
                closedir(d);
        }
    }
    printf("kin forged=%lu sum=%lu ok\n", (unsigned long)forged, (unsigned long)(sum & 0xff));
    return 0;
}
