/*
 * A library for the program "unreadable": a function with arguments in memory
 * (what name points to, and n, the seventh) and in registers, and one without.
 */
__attribute__((noipa)) int plug(const char *name, int a, int b, int c, int d, int e, int n)
{
    return name[0] + a + b + c + d + e + n;
}

__attribute__((noipa)) int plug_number(int n)
{
    return n + 1;
}
