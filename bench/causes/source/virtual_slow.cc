// For cc, not for the go command, which takes a .cc file in a package for cgo.

/* A virtual call that meets a slow class: a basket option is priced by simulation, the others by a formula. */
#include "server.h"
#include <memory>
#include <vector>

struct option {
    virtual ~option() = default;
    virtual unsigned price(unsigned i) const = 0;
};
struct european : option {
    FN unsigned price(unsigned i) const override { return mix(&i, sizeof i, 8); }
};
struct american : option {
    FN unsigned price(unsigned i) const override { return mix(&i, sizeof i, 14); }
};
struct basket : option {
    FN unsigned price(unsigned i) const override
    {
        unsigned v = 0;
        for (unsigned path = 0; path < 40; path++)
            v += mix(&i, sizeof i, 500);
        return v;
    }
};

FN static unsigned price_all(const std::vector<std::unique_ptr<option>> &book)
{
    unsigned v = 0;
    for (unsigned i = 0; i < book.size(); i++)
        v ^= book[i]->price(i);
    return v;
}

FN static void value_book(struct request *r)
{
    std::vector<std::unique_ptr<option>> book;
    parse_request(r);
    for (unsigned i = 0, n = 10 + (unsigned)(uniform(&r->seed) * 10); i < n; i++) {
        if (r->odd && i == 5)
            book.emplace_back(new basket);
        else if (draw(&r->seed) & 1)
            book.emplace_back(new european);
        else
            book.emplace_back(new american);
    }
    r->seed ^= price_all(book) * 2;
    render_reply(r);
}

int main(int argc, char **argv)
{
    static struct server s;
    s.handle = value_book, s.every_ms = 300, s.slow_ms = 5;
    return serve(argc, argv, &s);
}
