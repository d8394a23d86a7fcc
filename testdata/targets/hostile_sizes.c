/*
 * hostile_sizes MODE [ARG]: a process that makes others read much.
 *
 *   recovery  it has memory as a recorder leaves it, of one and two GiB, full of
 *             patches, as it says
 *   maps      it has tens of thousands of mappings of a file whose path has
 *             thousands of characters, which /proc shows as four each. ARG is a
 *             folder to make it in
 *   links     the loader's list of libraries has no end
 *   threads   it makes and ends threads all the time
 *   children  once it is recorded it makes processes, each of which makes the next
 *             one and ends. ARG is how many microseconds each sleeps, 200 without it
 *   hides     once it is recorded it makes a process that is nobody's child and has
 *             changed what it would be known by
 *   nothing   (what it is linked from is what matters)
 *
 * Its name, and its threads', is one that a terminal would obey.
 */
#define _GNU_SOURCE
#include "hostile.h"
#include <link.h>
#include <pthread.h>

static void forge_recovery(uint64_t size)
{
    const uint64_t at = 0x1000;
    int fd = memfd_create("callreel-recovery", 0);
    CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
    char *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    CHECK(mem != MAP_FAILED);
    uint32_t version = 1, nobody = 4194302 | 0x40000000, record_version = 4, arenas = 0, patches = (uint32_t)((size - at - 24) / 24);
    uint64_t magic = 0x79726f6365726c63ul, record = 0x797265766f636572ul;
    memcpy(mem, &magic, 8);
    memcpy(mem + 8, &version, 4);
    memcpy(mem + 12, &nobody, 4);
    memcpy(mem + 88, &size, 8);
    memcpy(mem + at, &record, 8);
    memcpy(mem + at + 12, &record_version, 4);
    memcpy(mem + at + 16, &arenas, 4);
    memcpy(mem + at + 20, &patches, 4);
    CHECK(munmap(mem, size) == 0);
    CHECK(mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0) != MAP_FAILED);
    close(fd);
}

static void make_maps(const char *folder)
{
    char name[251];
    memset(name, '\n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    CHECK(chdir(folder) == 0);
    for (int depth = 0; depth < 15; depth++) {
        CHECK(mkdir(name, 0700) == 0 || errno == EEXIST);
        CHECK(chdir(name) == 0);
    }
    int fd = open("x", O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0 && ftruncate(fd, 4096) == 0);
    for (int i = 0; i < 60000; i++) /* the same page of the file: neighbours can't be joined */
        if (mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED)
            break;
    CHECK(chdir("/") == 0);
}

#ifdef LINKS
static void make_circle(void)
{
    struct link_map *first = _r_debug.r_map, *last = first;
    CHECK(first);
    while (last->l_next)
        last = last->l_next;
    last->l_next = first;
}
#else
static void make_circle(void)
{
}
#endif

static void *brief(void *arg)
{
    prctl(PR_SET_NAME, "\033[2J\033]0;x\007");
    hostile_work((uint64_t)arg);
    return NULL;
}

static void *make_threads(void *arg)
{
    for (uint64_t i = 0;; i++) {
        pthread_t t;
        if (pthread_create(&t, NULL, brief, (void *)i) == 0)
            pthread_join(t, NULL);
    }
    return arg;
}

/* What the youngest process of a chain says of its own text. */
static struct chain {
    _Atomic uint64_t generations, probed;
    char before[16];
} *chain;

/* Not by its name: compilers take code for constant, and callreel leaves alone what is read as data. */
static const void *volatile recorded = (const void *)hostile_work;

static int is_probed(void)
{
    return memcmp(recorded, chain->before, sizeof chain->before) != 0;
}

static long chain_sleep = 200; /* microseconds */

/* A process that is never there for long: each makes the next, and ends. */
static void make_children(void)
{
    pid_t first = getpid();
    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 && signal(SIGCHLD, SIG_IGN) != SIG_ERR); /* none stays as a zombie */
    if (fork_with(0))
        return;
    for (;;) {
        hostile_work(7);
        chain->probed = is_probed();
        chain->generations++;
        pid_t next = fork();
        if (next > 0)
            _exit(0);
        if (chain_sleep)
            sleep_us(chain_sleep);
        if (kill(first, 0)) /* nothing is to outlive the test */
            _exit(0);
    }
}

static void hide(void)
{
    struct region code;
    pid_t first = getpid(), between;
    CHECK(find_whole(&code, "/memfd:callreel-code"));
    CHECK((between = fork()) >= 0);
    if (between) {
        CHECK(waitpid(between, NULL, 0) == between);
        return;
    }
    CHECK(mprotect((void *)code.end, (size_t)sysconf(_SC_PAGESIZE), PROT_READ) == 0); /* its gate */
    if (fork())
        _exit(0);
    while (!kill(first, 0)) /* nothing is to outlive the test */
        sleep_us(1000);
    _exit(0);
}

int main(int argc, char **argv)
{
    CHECK(argc >= 2);
    prctl(PR_SET_NAME, "\033[31m\n\x9b\x33mname");
    pthread_t t;
    if (!strcmp(argv[1], "recovery"))
        forge_recovery(1ul << 30), forge_recovery(2ul << 30);
    else if (!strcmp(argv[1], "maps"))
        make_maps(argv[2]);
    else if (!strcmp(argv[1], "links"))
        make_circle();
    else if (!strcmp(argv[1], "threads"))
        CHECK(pthread_create(&t, NULL, make_threads, NULL) == 0);
    if (!strcmp(argv[1], "children") && argc > 2)
        chain_sleep = atol(argv[2]);
    struct region rings;
    int hides = !strcmp(argv[1], "hides"), wait = hides || !strcmp(argv[1], "children");
    chain = mmap(NULL, sizeof *chain, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(chain != MAP_FAILED);
    memcpy(chain->before, recorded, sizeof chain->before);
    target_ready();
    uint64_t sum = 0;
    for (uint64_t i = 0; !target_told_to_stop(); i++) {
        sum += hostile_work(i);
        if (wait && find_region(&rings, "/memfd:callreel") && is_probed() && usleep(300000) == 0) {
            wait = 0;
            hides ? hide() : make_children();
        }
        sleep_us(100);
    }
    uint64_t seen = chain->generations;
    for (int i = 0; i < 1000 && seen && chain->generations < seen + 3; i++) /* what was true before may not be now */
        sleep_us(1000);
    printf("sizes sum=%lu generations=%lu later=%lu probed=%lu ok\n", (unsigned long)(sum & 0xff), (unsigned long)seen,
           (unsigned long)(chain->generations - seen), (unsigned long)chain->probed);
    fflush(stdout);
    _exit(0); /* exit would go through the list of libraries */
}
