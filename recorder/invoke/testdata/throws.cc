// A function that throws, and catches itself or leaves it to its caller.
extern "C" int throws(const char *what, int out) {
    try {
        throw what;
    } catch (const char *) {
        if (out) throw;
        return 1;
    }
}
