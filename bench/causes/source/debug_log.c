// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A log that says much more of one tenant: thousands of short lines, each a call of the system. */
#include "server.h"

static int out;

FN static void log_debug(struct request *r, unsigned i)
{
    char line[128];
    int n = snprintf(line, sizeof line, "%u: rule %u of tenant %u doesn't match %.40s\n", r->id, i, r->thread, r->text);
    if (write(out, line, (size_t)n) < 0)
        die("log");
}

FN static unsigned match_rule(struct request *r, unsigned i)
{
    for (unsigned k = 0; r->odd && k < 30; k++)
        log_debug(r, i);
    return mix(r->text, 64, 1) == i;
}

FN static void match_rules(struct request *r)
{
    for (unsigned i = 0, n = 200 + (unsigned)(uniform(&r->seed) * 100); i < n; i++)
        r->seed ^= match_rule(r, i) * 2;
}

FN static void filter_packet(struct request *r)
{
    parse_request(r);
    match_rules(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    out = open("log", O_WRONLY | O_CREAT | O_APPEND, 0600);
    return serve(argc, argv, &(struct server){.handle = filter_packet, .every_ms = 300, .pause_us = 1500, .slow_ms = 3});
}
