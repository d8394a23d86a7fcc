// For cc, not for the go command, which takes a .cc file in a package for cgo.

/* A writer of a std::shared_mutex: all who look up wait while the routes are replaced. */
#include "server.h"
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>

static std::shared_mutex routes_lock;
static std::map<std::string, unsigned> routes;

FN static unsigned find_route(const std::string &name)
{
    std::shared_lock<std::shared_mutex> held(routes_lock);
    auto it = routes.find(name);
    return it == routes.end() ? 0 : it->second;
}

FN static void check_route(unsigned i) { routes["/r" + std::to_string(i % 40)] = mix("route", 5, 1000); }

FN static void replace_routes()
{
    std::unique_lock<std::shared_mutex> held(routes_lock);
    for (unsigned i = 0; i < 60; i++)
        check_route(i);
}

static void reloader()
{
    for (; serving; pause_ms(300))
        replace_routes();
}

FN static void dispatch(struct request *r)
{
    parse_request(r);
    for (unsigned i = 0; i < 4; i++)
        r->seed ^= find_route("/r" + std::to_string(r->id % 40)) * 2;
    render_reply(r);
}

int main(int argc, char **argv)
{
    static struct server s;
    s.handle = dispatch, s.slow_ms = 10;
    background("reloader", reloader);
    return serve(argc, argv, &s);
}
