// For cc, not for the go command, which takes a .cc file in a package for cgo.

/* A large thing that goes out of scope: its tree is taken down node by node, where nothing of it is written. */
#include "server.h"
#include <map>
#include <memory>
#include <string>

struct document {
    std::map<std::string, std::string> fields;
    FN ~document() {}
};

static document *volatile loaded;

FN static std::unique_ptr<document> open_document(unsigned n)
{
    std::unique_ptr<document> d(new document);
    for (unsigned i = 0; i < n; i++)
        d->fields["the field number " + std::to_string(i)] = "a value that is stored by itself " + std::to_string(i);
    return d;
}

static void imports()
{
    for (; serving; pause_ms(20))
        if (loaded == nullptr)
            loaded = open_document(60000).release();
}

FN static void close_document(std::unique_ptr<document> d) { d.reset(); }

FN static void save_document(struct request *r)
{
    parse_request(r);
    std::unique_ptr<document> d;
    if (r->odd)
        d.reset(__atomic_exchange_n((document **)&loaded, (document *)nullptr, __ATOMIC_ACQ_REL));
    if (!d)
        d = open_document(20 + (unsigned)(uniform(&r->seed) * 20));
    close_document(std::move(d));
    render_reply(r);
}

int main(int argc, char **argv)
{
    static struct server s;
    s.handle = save_document, s.every_ms = 400, s.slow_ms = 4;
    background("imports", imports);
    return serve(argc, argv, &s);
}
