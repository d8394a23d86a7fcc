// For cc, not for the go command, which takes a .cc file in a package for cgo.

/* Work put off: a tenant's tables are built by the first request that needs them, and others wait for that. */
#include "server.h"
#include <memory>
#include <mutex>
#include <vector>

class Tenant {
public:
    FN Tenant()
    {
        for (unsigned i = 0; i < 400; i++)
            add_rule(i);
    }
    FN void add_rule(unsigned i) { rules.push_back(mix(this, sizeof *this, 150 + i % 3)); }
    FN unsigned apply(unsigned i) const { return rules[i % rules.size()]; }

private:
    std::vector<unsigned> rules;
};

static std::shared_ptr<Tenant> tenants[2];

FN static std::shared_ptr<Tenant> tenant_of(struct request *r)
{
    std::shared_ptr<Tenant> &t = tenants[r->thread];
    if (r->odd)
        t.reset(); // it was idle for too long
    if (!t)
        t = std::make_shared<Tenant>();
    return t;
}

FN static void apply_rules(struct request *r)
{
    parse_request(r);
    r->seed ^= tenant_of(r)->apply(r->id) | 1;
    render_reply(r);
}

int main(int argc, char **argv)
{
    for (auto &t : tenants)
        t = std::make_shared<Tenant>();
    static struct server s;
    s.handle = apply_rules, s.every_ms = 300, s.slow_ms = 3;
    return serve(argc, argv, &s);
}
