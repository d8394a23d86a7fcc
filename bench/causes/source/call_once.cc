// For cc, not for the go command, which takes a .cc file in a package for cgo.

/* std::call_once that another thread is in: it loads a tenant's rules, and the requests for that tenant wait. */
#include "server.h"
#include <atomic>
#include <mutex>

enum { TENANTS = 4000 };
struct tenant {
    std::once_flag once;
    unsigned rules = 0;
};
static tenant tenants[TENANTS];
static std::atomic<unsigned> newest{0};

FN static unsigned parse_rule(unsigned i) { return mix(&i, sizeof i, 800); }

FN static void load_tenant(tenant *t)
{
    for (unsigned i = 0; i < 50; i++)
        t->rules ^= parse_rule(i);
}

FN static unsigned rules_of(tenant *t)
{
    std::call_once(t->once, load_tenant, t);
    return t->rules;
}

static void preloader()
{
    for (unsigned next = 1; serving && next < TENANTS; next++) {
        newest = next;
        rules_of(&tenants[next]);
        pause_ms(300);
    }
}

FN static void check_order(struct request *r)
{
    parse_request(r);
    r->seed ^= rules_of(&tenants[newest]) * 2;
    render_reply(r);
}

int main(int argc, char **argv)
{
    static struct server s;
    s.handle = check_order, s.slow_ms = 10;
    rules_of(&tenants[0]);
    background("preloader", preloader);
    return serve(argc, argv, &s);
}
