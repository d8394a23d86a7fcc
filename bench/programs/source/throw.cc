// One portion of work for each line of input, answered by what came of it:
// throws of many kinds through frames that have something to destroy.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<int64_t> destroyed;

struct Counted {
    std::string held;
    explicit Counted(std::string s) : held(std::move(s)) {}
    ~Counted() { destroyed++; }
};

[[gnu::noinline]] int descend(int depth)
{
    Counted here("frame");
    if (depth == 0)
        throw std::out_of_range("deep");
    return descend(depth - 1) + static_cast<int>(here.held.size());
}

[[gnu::noinline]] int rethrow(int n)
{
    try {
        return descend(n);
    } catch (const std::logic_error &) {
        throw;
    }
}

[[gnu::noinline]] int nest(int n)
{
    try {
        return rethrow(n);
    } catch (...) {
        std::throw_with_nested(std::runtime_error("outer"));
    }
}

[[gnu::noinline]] int unnest(const std::exception &e)
{
    try {
        std::rethrow_if_nested(e);
    } catch (const std::exception &inner) {
        return 1 + unnest(inner);
    }
    return 1;
}

std::string portion()
{
    destroyed = 0;
    int64_t caught = 0, nested = 0, library = 0;
    for (int i = 0; i < 1000; i++) {
        try {
            nest(i % 30);
        } catch (const std::exception &e) {
            nested += unnest(e);
            caught++;
        }
        try {
            library += std::stoi(i % 2 ? "17" : "seventeen");
        } catch (const std::invalid_argument &) {
            library += 1000;
        }
        try {
            library += std::vector<int>(3).at(static_cast<size_t>(i % 5));
        } catch (const std::out_of_range &) {
            library += 7;
        }
    }
    std::vector<std::future<int>> futures;
    for (int i = 0; i < 8; i++)
        futures.push_back(std::async(std::launch::async, [i] { return rethrow(i) + 1; }));
    for (auto &f : futures)
        try {
            f.get();
        } catch (const std::out_of_range &) {
            caught++;
        }
    std::map<std::string, int> words;
    std::istringstream in("the quick brown fox jumps over the lazy dog and the quick dog sleeps");
    for (std::string w; in >> w;)
        words[w]++;
    std::ostringstream out;
    for (auto &[w, n] : words)
        out << w << '=' << n << ';';
    std::vector<std::function<double(double)>> steps;
    for (int i = 0; i < 100; i++)
        steps.push_back([i](double x) { return x * 0.5 + i; });
    double x = 1;
    for (int round = 0; round < 100; round++)
        for (auto &step : steps)
            x = step(x);
    out << caught << ' ' << nested << ' ' << library << ' ' << destroyed << ' ' << x;
    return out.str();
}

} // namespace

int main()
{
    for (std::string line; std::getline(std::cin, line);)
        std::cout << portion() << "\n~end" << std::endl;
    return 0;
}
