// says in C++: see says.c.
#include "says.c"
