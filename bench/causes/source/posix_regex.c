// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A pattern of POSIX: one subject lets the library's matcher go back again and again. */
#include "server.h"
#include <regex.h>

static regex_t rule;

FN static int match_rule(const char *subject)
{
    regmatch_t m[3];
    return regexec(&rule, subject, 3, m, 0) == 0;
}

FN static void screen_mail(struct request *r)
{
    char subject[1700];
    unsigned n = r->odd ? 1600 : 12 + (unsigned)(uniform(&r->seed) * 6);
    memset(subject, 'a', n);
    subject[n] = 0;
    parse_request(r);
    r->seed ^= (uint64_t)match_rule(subject) * 2;
    render_reply(r);
}

int main(int argc, char **argv)
{
    if (regcomp(&rule, "(a|aa)+b$", REG_EXTENDED) != 0)
        die("regcomp");
    return serve(argc, argv, &(struct server){.handle = screen_mail, .every_ms = 300, .slow_ms = 3});
}
