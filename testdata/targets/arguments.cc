// As arguments.c, with what C++ has besides.
#include "target.h"
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <cstring>
#include <string>
#include <string_view>

#define CALLED __attribute__((noinline, used))
#define KEEP __asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop" ::: "memory")

namespace app {

struct Base {
    virtual ~Base() {}
    int id = 42;
};

enum class Mode : unsigned char { off, on = 7, fast };

struct Small {
    int x;
    short y;
};

// Passed by reference: it has a copy constructor of its own.
struct Owner {
    std::string name;
    int k;
    Owner(std::string n, int k) : name(n), k(k) {}
    Owner(const Owner &o) : name(o.name), k(o.k) {}
};

struct Server : Base {
    std::string name{"server"};
    int port = 8000;
    bool busy = false;

    CALLED std::string handle(const std::string &path, std::string body, std::string_view part, Mode m, Small s);
    CALLED int own(Owner o, int after, int &ref, std::unique_ptr<int> p, long long last);
    CALLED void got_string(const std::string &v);
};

std::string Server::handle(const std::string &path, std::string body, std::string_view part, Mode m, Small s)
{
    KEEP;
    port++;
    busy = m == Mode::fast && s.x > 3 && !part.empty();
    return path + body;
}

int Server::own(Owner o, int after, int &ref, std::unique_ptr<int> p, long long last)
{
    KEEP;
    return o.k + after + ref + *p + last;
}

void Server::got_string(const std::string &v) { KEEP; }

CALLED void got_int(int v) { KEEP; }

template <typename T> CALLED T twice(T v, const T &w)
{
    KEEP;
    return v + w;
}

} // namespace app

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 10;
    app::Server s;
    bool waits = argc > 2 && strcmp(argv[2], "wait") == 0;
    if (waits) {
        target_ready();
        target_wait_line();
    }
    for (long i = 0; i < rounds; i++) {
        std::string path = "/path/" + std::to_string(i * 7919) + std::string(i % 90, 'x');
        s.got_string(s.handle(path, i % 2 ? "short" : "a longer body, for which std::string takes memory of its own", std::string_view(path).substr(1, i % 7),
                              i % 3 ? app::Mode::on : app::Mode::fast, {(int)(i * 11 - 500), (short)-i}));
        int r = i * 3;
        app::got_int(s.own(app::Owner("owner " + std::to_string(i), i), i + 1, r, std::make_unique<int>(i * 5), -i));
        app::twice(i * 0.5, i * 0.25);
        app::twice<unsigned short>(i, 65535 - i);
    }
    if (waits) {
        puts("counted");
        fflush(stdout);
        target_wait_line();
        printf("arguments rounds=%ld ok\n", rounds);
    }
}
