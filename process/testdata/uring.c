// Has an io_uring with the kernel's own threads: one that polls the queue ("poll"), or
// one that waits in a read for it ("work"). Prints "ready" when they are there, and "ok"
// when the read has ended well after a line on its standard input. Ends with 77 where
// there is no io_uring.
#define _GNU_SOURCE
#include <linux/io_uring.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
    struct io_uring_params p = {0};
    int poll = argc > 1 && !strcmp(argv[1], "poll");
    if (poll) {
        p.flags = IORING_SETUP_SQPOLL;
        p.sq_thread_idle = 60000;
    }
    int fd = syscall(SYS_io_uring_setup, 8, &p);
    if (fd < 0) return 77;
    enum { rw = PROT_READ | PROT_WRITE, shared = MAP_SHARED | MAP_POPULATE };
    char *sq = mmap(0, p.sq_off.array + p.sq_entries * 4, rw, shared, fd, IORING_OFF_SQ_RING);
    struct io_uring_sqe *e = mmap(0, p.sq_entries * sizeof *e, rw, shared, fd, IORING_OFF_SQES);
    char *cq = mmap(0, p.cq_off.cqes + p.cq_entries * 16, rw, shared, fd, IORING_OFF_CQ_RING);
    int in[2];
    static char buf[8];
    if (sq == MAP_FAILED || e == MAP_FAILED || cq == MAP_FAILED || pipe(in)) return 1;
    memset(e, 0, sizeof *e);
    e->opcode = IORING_OP_READ;
    e->flags = IOSQE_ASYNC;
    e->fd = in[0];
    e->addr = (unsigned long)buf;
    e->len = sizeof buf;
    *(unsigned *)(sq + p.sq_off.array) = 0;
    __atomic_add_fetch((unsigned *)(sq + p.sq_off.tail), 1, __ATOMIC_RELEASE);
    // A polling thread may already sleep.
    if (syscall(SYS_io_uring_enter, fd, !poll, 0, poll ? IORING_ENTER_SQ_WAKEUP : 0, 0, 0) != !poll) return 1;
    usleep(50000);
    puts("ready");
    fflush(stdout);
    char c;
    if (read(0, &c, 1) < 0) return 2;
    if (write(in[1], "12345678", 8) != 8) return 3;
    unsigned *tail = (unsigned *)(cq + p.cq_off.tail);
    for (int i = 0; i < 5000 && !__atomic_load_n(tail, __ATOMIC_ACQUIRE); i++) usleep(1000);
    struct io_uring_cqe *done = (struct io_uring_cqe *)(cq + p.cq_off.cqes);
    if (*tail != 1 || done->res != 8) {
        printf("%u completions, the first %d\n", *tail, done->res);
        return 4;
    }
    puts("ok");
    return 0;
}
