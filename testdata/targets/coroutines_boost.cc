/*
 * Fibers of Boost.Context, each on a stack of its own.
 *
 *   coroutines_boost STACKS KB TURNS
 *
 * All take turns, by way of the thread's own stack; in some turns an exception
 * leaves two calls.
 */
#include "target.h"

#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

namespace context = boost::context;

static uint64_t begun, waited, steps, jumped;
static volatile uint64_t sink;
static context::fiber own;

extern "C" TRACED void wait_for_turn()
{
    waited++;
    own = std::move(own).resume();
    sink = sink + 1;
}

extern "C" TRACED void step(int n)
{
    steps++;
    if (n)
        step(n - 1);
    sink = sink + 1;
}

extern "C" TRACED void jump_inner(int n)
{
    jumped++;
    if (n)
        throw std::runtime_error("a turn");
}

extern "C" TRACED void jump(int n)
{
    jump_inner(n);
    sink = sink + 1;
}

extern "C" TRACED void take_turns(int turns)
{
    begun++;
    for (int i = 1; i < turns; i++) {
        step(i % 4);
        if (i % 5 == 0)
            try {
                jump(i);
            } catch (const std::runtime_error &) {
                sink = sink + 1;
            }
        wait_for_turn();
    }
    step(1);
    sink = sink + 1;
}

int main(int argc, char **argv)
{
    CHECK(argc == 4);
    int stacks = atoi(argv[1]), turns = atoi(argv[3]);
    size_t size = size_t(atoi(argv[2])) << 10;
    std::vector<context::fiber> fibers;
    for (int i = 0; i < stacks; i++)
        fibers.emplace_back(std::allocator_arg, context::fixedsize_stack(size), [turns](context::fiber &&from) {
            own = std::move(from);
            take_turns(turns);
            return std::move(own);
        });
    for (bool any = true; any;) {
        any = false;
        for (auto &f : fibers)
            if (f) {
                step(0);
                f = std::move(f).resume();
                any = true;
            }
    }
    printf("coroutines take_turns=%lu wait_for_turn=%lu step=%lu jump=%lu jump_inner=%lu ok\n", begun, waited, steps, jumped, jumped);
}
