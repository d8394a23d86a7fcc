// For cc, not for the go command, which takes a .c file in a package for cgo.

/* Quicksort with the first element as the pivot: what is sorted already takes the square of the time, and as deep a recursion. */
#include "server.h"

enum { LINES = 1400 };

FN static unsigned partition(uint32_t *v, unsigned n)
{
    unsigned at = 0;
    for (unsigned i = 1; i < n; i++)
        if (v[i] < v[0]) {
            uint32_t t = v[++at];
            v[at] = v[i];
            v[i] = t;
        }
    uint32_t t = v[0];
    v[0] = v[at];
    v[at] = t;
    return at;
}

FN static void quick_sort(uint32_t *v, unsigned n)
{
    if (n < 12) {
        for (unsigned i = 1; i < n; i++)
            for (unsigned k = i; k > 0 && v[k] < v[k - 1]; k--) {
                uint32_t t = v[k];
                v[k] = v[k - 1];
                v[k - 1] = t;
            }
        return;
    }
    unsigned at = partition(v, n);
    quick_sort(v, at);
    quick_sort(v + at + 1, n - at - 1);
}

FN static void order_lines(struct request *r)
{
    uint32_t lines[LINES * 4];
    unsigned n = r->odd ? LINES * 4 : LINES + (unsigned)(uniform(&r->seed) * 100);
    for (unsigned i = 0; i < n; i++)
        lines[i] = r->odd ? i : (uint32_t)draw(&r->seed);
    quick_sort(lines, n);
    r->seed ^= lines[n / 2] * 2;
}

FN static void list_invoice(struct request *r)
{
    parse_request(r);
    order_lines(r);
    render_reply(r);
}

int main(int argc, char **argv) { return serve(argc, argv, &(struct server){.handle = list_invoice, .every_ms = 300, .pause_us = 1000, .slow_ms = 4}); }
