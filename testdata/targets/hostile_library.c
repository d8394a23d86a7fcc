/* hostile_library: a shared library with a few functions, for hostile_truncated. */
#define _GNU_SOURCE
#include "hostile.h"

TRACED uint64_t hostile_library_function(uint64_t x)
{
    return hostile_work(x) + hostile_leaf(x);
}
