// For cc, not for the go command, which takes a .cc file in a package for cgo.

/* A regular expression that backtracks: std::regex tries all ways over a long path. */
#include "server.h"
#include <regex>
#include <string>

static const std::regex route("/(a|aa)+/(edit|show)");

FN static bool match_route(const std::string &path) { return std::regex_match(path, route); }

FN static void route_request(struct request *r)
{
    std::string path = "/" + std::string(r->odd ? 19 : 3 + r->id % 3, 'a') + (r->odd ? "/delete" : "/edit");
    parse_request(r);
    r->seed ^= match_route(path) ? 2 : 4;
    render_reply(r);
}

int main(int argc, char **argv)
{
    static struct server s;
    s.handle = route_request, s.every_ms = 300, s.slow_ms = 2;
    return serve(argc, argv, &s);
}
