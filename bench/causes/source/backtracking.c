// For cc, not for the go command, which takes a .c file in a package for cgo.

/* Backtracking: a pattern with two stars in a row tries all ways on a text that doesn't match. */
#include "server.h"

FN static int match_here(const char *pattern, const char *text);

FN static int match_star(const char *pattern, const char *text)
{
    do
        if (match_here(pattern, text))
            return 1;
    while (*text++ != 0);
    return 0;
}

FN static int match_here(const char *pattern, const char *text)
{
    if (*pattern == 0)
        return *text == 0;
    if (*pattern == '*')
        return match_star(pattern + 1, text);
    return *text == *pattern && match_here(pattern + 1, text + 1);
}

FN static void match_rules(struct request *r)
{
    char text[128];
    unsigned n = r->odd ? 54 : 4 + (unsigned)(uniform(&r->seed) * 5);
    memset(text, 'a', n);
    text[n] = 'b';
    text[n + 1] = 0;
    match_here("*a*a*a*c", text);
}

FN static void filter_mail(struct request *r)
{
    parse_request(r);
    match_rules(r);
    render_reply(r);
}

int main(int argc, char **argv) { return serve(argc, argv, &(struct server){.handle = filter_mail, .every_ms = 400, .slow_ms = 4}); }
