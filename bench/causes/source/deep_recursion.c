// For cc, not for the go command, which takes a .c file in a package for cgo.

/* Recursion deeper than usual: one tree has degenerated into a list. */
#include "server.h"

struct node {
    struct node *left, *right;
    unsigned value;
};
static struct node bushy[256], list[20000];

FN static unsigned visit_node(const struct node *n)
{
    if (n == NULL)
        return 0;
    unsigned v = visit_node(n->left) + n->value;
    for (unsigned i = 0; i < 200; i++)
        v = v * 31 + n->value;
    return v + visit_node(n->right);
}

FN static void sum_tree(struct request *r) { r->seed ^= visit_node(r->odd ? &list[0] : &bushy[1]) | 1; }

FN static void total_account(struct request *r)
{
    parse_request(r);
    sum_tree(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    for (unsigned i = 1; i < 256; i++)
        bushy[i] = (struct node){i < 128 ? &bushy[2 * i] : NULL, i < 128 && 2 * i + 1 < 256 ? &bushy[2 * i + 1] : NULL, i};
    for (unsigned i = 0; i < 20000; i++)
        list[i] = (struct node){NULL, i + 1 < 20000 ? &list[i + 1] : NULL, i};
    return serve(argc, argv, &(struct server){.handle = total_account, .every_ms = 300, .slow_ms = 3});
}
