/*
 * A library for the program "loading": WHICH is what tells it from others of
 * exactly the same shape. With BEGINS its constructor calls a function.
 */
__attribute__((noipa)) static int seven_times(int x)
{
    return x * 7;
}

int library_value(int x)
{
    return seven_times(x) + WHICH;
}

int library_other(int x)
{
    return seven_times(x) * 4 + WHICH;
}

#ifdef BEGINS
__attribute__((constructor)) static void begin(void)
{
    library_value(1);
}
#endif
