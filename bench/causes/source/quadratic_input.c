// For cc, not for the go command, which takes a .c file in a package for cgo.

/* Quadratic work on a large input: duplicates are looked for by comparing each tag with all before it. */
#include "server.h"

#define PREFIX "https://tags.example.org/of-items/of-this-shop/of-this-country/of-this-year/of-this-season/of-this-collection/of-this-size"
struct tags {
    unsigned n;
    char tag[700][200];
};

FN static int same_tag(const char *a, const char *b)
{
    while (*a != 0 && *a == *b)
        a++, b++;
    return *a == *b;
}

FN static int is_duplicate(const struct tags *t, unsigned k)
{
    for (unsigned i = 0; i < k; i++)
        if (same_tag(t->tag[i], t->tag[k]))
            return 1;
    return 0;
}

FN static unsigned unique_tags(const struct tags *t)
{
    unsigned n = 0;
    for (unsigned k = 0; k < t->n; k++)
        n += !is_duplicate(t, k);
    return n;
}

FN static void read_tags(struct request *r, struct tags *t)
{
    t->n = r->odd ? 600 : 20 + (unsigned)(uniform(&r->seed) * 30);
    for (unsigned i = 0; i < t->n; i++)
        snprintf(t->tag[i], sizeof t->tag[i], "%s/%u", PREFIX, i * 7 % 4001);
}

FN static void tag_item(struct request *r)
{
    struct tags *t = malloc(sizeof *t);
    parse_request(r);
    read_tags(r, t);
    r->seed ^= unique_tags(t);
    render_reply(r);
    free(t);
}

int main(int argc, char **argv) { return serve(argc, argv, &(struct server){.handle = tag_item, .every_ms = 300, .slow_ms = 8}); }
