// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A stream's own lock: an audit holds it with flockfile, and a request that prints a line waits. */
#include "server.h"

static FILE *access_log;

FN static void audit_record(unsigned n)
{
    mix(&n, sizeof n, 900);
    fprintf(access_log, "audit %u\n", n);
}

FN static void write_audit(void)
{
    flockfile(access_log);
    for (unsigned i = 0; i < 40; i++)
        audit_record(i);
    funlockfile(access_log);
}

static void auditor(void)
{
    while (serving) {
        pause_ms(300);
        write_audit();
    }
}

FN static void log_access(struct request *r) { fputs(r->text, access_log); }

FN static void get_page(struct request *r)
{
    parse_request(r);
    log_access(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    access_log = fopen("/dev/null", "w");
    background("auditor", auditor);
    return serve(argc, argv, &(struct server){.handle = get_page, .slow_ms = 8});
}
