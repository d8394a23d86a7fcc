// For cc, not for the go command, which takes a .cc file in a package for cgo.

/* A container that is copied by value: harmless while books are short. */
#include "server.h"
#include <map>
#include <string>

class OrderBook {
public:
    FN void add(unsigned price, const std::string &who) { levels[price] = who; }
    FN size_t depth() const { return levels.size(); }
    std::map<unsigned, std::string> levels;
};

static OrderBook usual, deep;

FN static size_t quote(OrderBook book) { return book.depth(); } // a copy

FN static void quote_market(struct request *r)
{
    parse_request(r);
    r->seed ^= quote(r->odd ? deep : usual) | 1;
    render_reply(r);
}

int main(int argc, char **argv)
{
    for (unsigned i = 0; i < 30; i++)
        usual.add(i, "somebody with a name that is long");
    for (unsigned i = 0; i < 40000; i++)
        deep.add(i, "somebody with a name that is long");
    static struct server s;
    s.handle = quote_market, s.every_ms = 300, s.slow_ms = 3;
    return serve(argc, argv, &s);
}
