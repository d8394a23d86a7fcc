// For cc, not for the go command, which takes a .cc file in a package for cgo.

/* The path of exceptions: fields that aren't numbers are told by throwing, some thousands of them in one request. */
#include "server.h"
#include <stdexcept>
#include <string>
#include <vector>

FN static int parse_number(const std::string &field)
{
    int v = 0;
    for (char c : field) {
        if (c < '0' || c > '9')
            throw std::invalid_argument("not a number: " + field);
        v = v * 10 + c - '0';
    }
    return v;
}

FN static int number_or_zero(const std::string &field)
{
    try {
        return parse_number(field);
    } catch (const std::invalid_argument &) {
        return 0;
    }
}

FN static int sum_fields(const std::vector<std::string> &fields)
{
    int sum = 0;
    for (const std::string &f : fields)
        sum += number_or_zero(f);
    return sum;
}

FN static void import_csv(struct request *r)
{
    std::vector<std::string> fields;
    parse_request(r);
    for (unsigned i = 0, n = 2500 + (unsigned)(uniform(&r->seed) * 1000); i < n; i++)
        fields.push_back(r->odd ? "n/a" : std::to_string(i));
    r->seed ^= (unsigned)sum_fields(fields) | 1;
    render_reply(r);
}

int main(int argc, char **argv)
{
    static struct server s;
    s.handle = import_csv, s.every_ms = 300, s.pause_us = 1500, s.slow_ms = 3;
    return serve(argc, argv, &s);
}
