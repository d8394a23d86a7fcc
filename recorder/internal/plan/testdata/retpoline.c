/*
 * Indirect jumps of every kind, to be compiled with and without thunks: what
 * they are doesn't depend on that.
 */
typedef int function(int);
extern function *volatile pointers[4];

int dispatch(const unsigned char *p) /* computed gotos, by addresses */
{
    static void *const table[] = {&&add, &&shift, &&flip, &&end};
    int s = 0;
    goto *table[*p];
add:
    s += 7, p++;
    goto *table[*p];
shift:
    s <<= 1, p++;
    goto *table[*p];
flip:
    s ^= 5, p++;
    goto *table[*p];
end:
    return s;
}

int tail(int n, int x) /* leaves by the jump */
{
    return pointers[n & 3](x + 1);
}

int given(function *f, int x)
{
    return f(x * 3);
}

int calls(int n, int x) /* comes back */
{
    return pointers[n & 3](x) + pointers[(n + 1) & 3](x) + 1;
}

int plain(int x)
{
    return x * 17 + 3;
}

function *volatile pointers[4] = {plain, plain, plain, plain};

int main(int argc, char **argv)
{
    return dispatch((const unsigned char *)argv[0]) + tail(argc, 1) + given(pointers[0], 2) + calls(argc, 3);
}
