// For cc, not for the go command, which takes a .c file in a package for cgo.

/* Numbers read by sscanf, which takes the length of all that is left each time: of a long list that is quadratic. */
#include "server.h"

static char *long_list;

FN static unsigned read_items(const char *list)
{
    unsigned sum = 0, v;
    int n;
    while (sscanf(list, "%u,%n", &v, &n) == 1) {
        sum += v;
        list += n;
    }
    return sum;
}

FN static void load_inventory(struct request *r)
{
    char few[128];
    int n = 0;
    parse_request(r);
    for (int i = 0, all = 6 + (int)(uniform(&r->seed) * 6); i < all; i++)
        n += snprintf(few + n, sizeof few - (size_t)n, "%u,", 100 + (unsigned)draw(&r->seed) % 800);
    r->seed ^= (uint64_t)read_items(r->odd ? long_list : few) * 2;
    render_reply(r);
}

int main(int argc, char **argv)
{
    enum { ITEMS = 4000 };
    long_list = malloc(ITEMS * 8 + 1);
    for (int i = 0; i < ITEMS; i++)
        sprintf(long_list + i * 8, "%7d,", 1000000 + i);
    return serve(argc, argv, &(struct server){.handle = load_inventory, .every_ms = 350, .slow_ms = 3});
}
