/*
 * hostile_privileged UID MODE [FORGED]: a process of root's that works in a child
 * that has given up its privileges, as servers do. The child has come into other
 * hands, and reaches for its parent by what the two share:
 *
 *   claim   it makes the place where the parent's next event goes (its claim word in
 *           the ring memory) an address in the parent's own memory
 *   group   the same, of a process that has only a group in advance of its user, as
 *           a setgid program, and a child that has given that up
 *   later   as claim, a second after it has given up its privileges, again and again
 *   code    it makes the parent's stubs writable in its own memory, and has them
 *           return at once
 *   record  it writes FORGED's records (from RECORDS on) where a recorder notes what
 *           there is to be undone: see hostile_client
 *
 * "attacked" is said once the child has tried; its line has "reached", how often it
 * could write to memory that both see. The last line has "spoiled", how often the
 * parent has found its own memory changed.
 */
#define _GNU_SOURCE
#include "hostile.h"
#include <grp.h>

#define RECORDS 0x1000
#define JIT_AT 0x10000000ul
#define CANARY 0x1122334455667788ul

static volatile uint64_t precious[64] __attribute__((aligned(64)));
static char forged[1 << 16];

static int can_write(void *at)
{
    /* Whether it is there and may be written, without a fault: the kernel reads into it. */
    int p[2];
    char byte = *(volatile char *)at;
    CHECK(pipe(p) == 0 && write(p[1], &byte, 1) == 1);
    int can = read(p[0], at, 1) == 1;
    close(p[0]), close(p[1]);
    return can;
}

static int attack(const char *mode, pid_t parent, const char *file)
{
    struct region r;
    if (!strcmp(mode, "code")) {
        int reached = 0;
        for (uint64_t at = 0; region_after(&r, at, "/memfd:callreel-code"); at = r.end)
            if (r.perm[3] == 's' && /* what is private is a copy of its own */
                mprotect((void *)r.start, r.end - r.start, PROT_READ | PROT_WRITE) == 0 && can_write((void *)r.start))
                reached++;
        return reached;
    }
    if (!strcmp(mode, "record")) {
        int f = open(file, O_RDONLY), reached = 0;
        ssize_t n = read(f, forged, sizeof forged);
        CHECK(n > RECORDS);
        for (uint64_t at = 0; region_after(&r, at, "/memfd:callreel-recovery"); at = r.end)
            if (mprotect((void *)r.start, r.end - r.start, PROT_READ | PROT_WRITE) == 0 && can_write((void *)r.start)) {
                memcpy((char *)r.start + RECORDS, forged + RECORDS, (size_t)n - RECORDS);
                reached++;
            }
        return reached;
    }
    if (!strcmp(mode, "later"))
        for (int i = 0; i < 1000; i++) {
            hostile_work((uint64_t)i);
            sleep_us(1000);
        }
    if (!find_whole(&r, "/memfd:callreel"))
        return 0;
    char *ring = (char *)r.start;
    if (strchr(r.perm, 'w') == NULL || !can_write(ring))
        return 0;
    _Atomic uint64_t *claim = (void *)(ring + SLOTS_OFF + (uint64_t)parent * SLOT_SIZE + SLOT_CLAIM);
    for (int i = 0; i < 100000; i++)
        *claim = CLAIM_EMPTY | (uint64_t)precious;
    return 1;
}

int main(int argc, char **argv)
{
    CHECK(argc >= 3);
    uid_t uid = (uid_t)atoi(argv[1]);
    const int fixed = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    char *jit = mmap((void *)JIT_AT, 0x2000, PROT_READ | PROT_WRITE, fixed, -1, 0);
    uint64_t *canary = mmap((void *)(JIT_AT + 0x2000), 0x1000, PROT_READ | PROT_WRITE, fixed, -1, 0);
    CHECK(jit == (char *)JIT_AT && canary == (void *)(JIT_AT + 0x2000));
    fill_with_returns(jit, 0x2000);
    CHECK(mprotect(jit, 0x2000, PROT_READ | PROT_EXEC) == 0);
    *canary = CANARY;
    int group = !strcmp(argv[2], "group");
    if (group)
        CHECK(setgroups(0, NULL) == 0 && setresgid(uid, uid + 1, uid + 1) == 0 && setresuid(uid, uid, uid) == 0);
    target_ready();
    uint64_t sum = 0;
    struct region r;
    while (!find_region(&r, "/memfd:callreel")) {
        sum += hostile_work(sum);
        if (target_told_to_stop())
            return 0;
    }
    for (int i = 0; i < 1000; i++) { /* until recording is on */
        sum += hostile_work(sum);
        sleep_us(500);
    }
    pid_t parent = getpid();
    if (fork() == 0) {
        if (group)
            CHECK(setresgid(uid, uid, uid) == 0 && setgid(uid + 1) != 0);
        else
            CHECK(setgroups(0, NULL) == 0 && setgid(uid) == 0 && setuid(uid) == 0);
        CHECK(setuid(0) != 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* which that has undone */
        CHECK(getppid() == parent);
        sum += hostile_work(sum); /* so that its gate opens, if it is followed */
        int reached = attack(argv[2], parent, argc > 3 ? argv[3] : "");
        printf("attacked reached=%d ok\n", reached);
        fflush(stdout);
        for (;;) {
            sum += hostile_work(sum);
            sleep_us(1000);
        }
    }
    int spoiled = 0;
    while (!target_told_to_stop()) {
        sum += hostile_work(sum);
        for (size_t i = 0; i < sizeof precious / sizeof precious[0]; i++)
            if (precious[i]) {
                spoiled++;
                precious[i] = 0;
            }
        ((void (*)(void))jit)();
        CHECK(*canary == CANARY);
    }
    printf("privileged spoiled=%d sum=%lu ok\n", spoiled, (unsigned long)(sum & 0xff));
    return 0;
}
