// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A system call that seccomp hands to a supervisor: it takes its time over some paths. */
#include "server.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <stddef.h>

static void supervise(int listener)
{
    struct seccomp_notif ask;
    struct seccomp_notif_resp answer;
    for (;;) {
        memset(&ask, 0, sizeof ask);
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &ask) != 0) {
            if (errno == EINTR)
                continue;
            return;
        }
        if (ask.data.args[2] == 0x5a)
            sleep_us(30000);
        memset(&answer, 0, sizeof answer);
        answer.id = ask.id;
        answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
}

/* Passes kcmp on to the supervisor, which is another process, and lets all else through. */
static void install_filter(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kcmp, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = {sizeof code / sizeof code[0], code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    long listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
    if (listener < 0)
        die("seccomp");
    /* The child has the listener, and this process none, so that it isn't its own supervisor. */
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(1);
        supervise((int)listener);
        _exit(0);
    }
    close((int)listener);
}

/* Stands for any call that a sandbox's supervisor looks at. */
FN static long check_access(struct request *r, unsigned i)
{
    return syscall(SYS_kcmp, getpid(), getpid(), r->odd && i == 3 ? 0x5a : 0, 0, 0);
}

FN static void open_document(struct request *r)
{
    for (unsigned i = 0; i < 6; i++)
        check_access(r, i);
}

FN static void show_document(struct request *r)
{
    parse_request(r);
    open_document(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    install_filter();
    return serve(argc, argv, &(struct server){.handle = show_document, .every_ms = 300, .slow_ms = 10});
}
