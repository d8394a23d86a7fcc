// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A child that is waited for: a hook of some requests is a program of its own. */
#include "server.h"
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

FN static void run_hook(const char *seconds)
{
    pid_t pid;
    char *args[] = {"sleep", (char *)seconds, NULL};
    if (posix_spawnp(&pid, "sleep", NULL, NULL, args, environ) == 0)
        waitpid(pid, NULL, 0);
}

FN static void accept_push(struct request *r)
{
    mix(r->text, 200, 50);
    if (r->odd)
        run_hook("0.03");
}

FN static void receive_pack(struct request *r)
{
    parse_request(r);
    accept_push(r);
    render_reply(r);
}

int main(int argc, char **argv) { return serve(argc, argv, &(struct server){.handle = receive_pack, .every_ms = 300, .slow_ms = 15}); }
