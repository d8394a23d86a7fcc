/*
 * namespaces: on a line on stdin forks two children, each the first process of
 * a PID namespace of its own, and says their IDs. Each calls early now and
 * then. On another line, or the end of stdin, the first calls step 1,000 times
 * and the second 2,000 times, and they end.
 */
#define _GNU_SOURCE
#include "target.h"
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static volatile uint64_t sum;

TRACED void early(void)
{
    sum++;
}

TRACED void step(void)
{
    sum++;
}

static void child(const atomic_int *on, int calls)
{
    CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
    while (!atomic_load(on)) {
        early();
        usleep(2000);
    }
    for (int i = 0; i < calls; i++)
        step();
    _exit(0);
}

/* A process may unshare its PID namespace once, and then its children are in the new one. */
static void parent(atomic_int *child_id, const atomic_int *on, int calls)
{
    CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
    CHECK(unshare(CLONE_NEWPID) == 0);
    pid_t id = fork();
    if (id == 0)
        child(on, calls);
    CHECK(id > 0);
    atomic_store(child_id, id);
    int status;
    CHECK(waitpid(id, &status, 0) == id && status == 0);
    _exit(0);
}

int main(void)
{
    struct {
        atomic_int on, children[2];
    } *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    target_ready();
    target_wait_line();
    pid_t parents[2];
    for (int i = 0; i < 2; i++) {
        parents[i] = fork();
        if (parents[i] == 0)
            parent(&shared->children[i], &shared->on, 1000 * (i + 1));
        CHECK(parents[i] > 0);
        while (atomic_load(&shared->children[i]) == 0)
            usleep(1000);
    }
    printf("children %d %d\n", shared->children[0], shared->children[1]);
    fflush(stdout);
    target_wait_line();
    atomic_store(&shared->on, 1);
    for (int i = 0; i < 2; i++) {
        int status;
        CHECK(waitpid(parents[i], &status, 0) == parents[i] && status == 0);
    }
    puts("namespaces children=2 ok");
    return 0;
}
