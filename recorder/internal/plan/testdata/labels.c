/*
 * Code that is full of labels which no direct branch leads to: dense switches,
 * in leaves and in functions with frames, in loops and one within another;
 * computed gotos by addresses and by offsets; tables shared, split and sparse.
 */
#include <stdlib.h>

volatile int sink;
int leaf_calls;

#define CASES(X)                                                              \
    X(0, 3) X(1, 1) X(2, 4) X(3, 1) X(4, 5) X(5, 9) X(6, 2) X(7, 6) X(8, 5)   \
    X(9, 3) X(10, 5) X(11, 8) X(12, 9) X(13, 7)

int leaf_switch(unsigned x, int a, int b)
{
    switch (x) {
#define X(n, k) case n: return a * k + (b ^ n);
        CASES(X)
#undef X
    }
    return b;
}

void leaf_void(unsigned x, int *p)
{
    switch (x) {
#define X(n, k) case n: p[k] = n; break;
        CASES(X)
#undef X
    }
}

int fallthrough(unsigned x, int a)
{
    switch (x) {
#define X(n, k) case n: a += k; sink = a; __attribute__((fallthrough));
        CASES(X)
#undef X
    default:
        a--;
    }
    return a;
}

int with_frame(unsigned x, int *p, int n)
{
    int buffer[64];
    for (int i = 0; i < n; i++)
        buffer[i & 63] = rand();
    switch (x % 17) {
#define X(n, k) case n: p[n] = buffer[k] + rand(); break;
        CASES(X)
#undef X
    default:
        abort();
    }
    return buffer[n & 63];
}

int state_machine(const unsigned char *s, int n)
{
    int state = 0, sum = 0;
    for (int i = 0; i < n; i++)
        switch (state) {
        case 0: state = s[i] & 7; break;
        case 1: sum += s[i]; state = s[i] > 9 ? 3 : 5; break;
        case 2: if (s[i] == 'x') return sum; state = 0; break;
        case 3: sum ^= s[i]; state = 6; break;
        case 4: sum -= rand(); state = 7; break;
        case 5: state = 1; break;
        case 6:
            switch (s[i] & 15) {
            case 0: sum++; break;
            case 1: sum += 4; break;
            case 2: sum = -sum; break;
            case 3: state = 4; break;
            case 4: sum <<= 1; break;
            case 5: sum += rand(); break;
            case 6: return -1;
            }
            break;
        default: state = 2;
        }
    return sum;
}

int tail_calls(unsigned x, int a)
{
    switch (x) {
    case 0: return leaf_switch(a, 1, 2);
    case 1: return fallthrough(a, 3);
    case 2: return abs(a);
    case 3: return rand();
    case 4: return leaf_switch(a, 4, 5);
    case 5: return fallthrough(a, 9);
    case 6: return tail_calls(a & 3, 1);
    }
    return a;
}

typedef int handler(int);
static int h0(int x) { return x + 1; }
static int h1(int x) { return x * 2; }
handler *handlers[] = {h0, h1, abs, h0};

int call_array(unsigned i, int x) { return handlers[i & 3](x); }

int interpret(const unsigned char *code, int acc)
{
    static void *const ops[] = {&&add, &&sub, &&twice, &&neg, &&jump, &&stop};
#define NEXT goto *ops[*code++ % 6]
    NEXT;
add:   acc += *code++; NEXT;
sub:   acc -= *code++; NEXT;
twice: acc *= 2; NEXT;
neg:   acc = -acc; if (acc > 100) leaf_calls++; NEXT;
jump:  code += *code; NEXT;
stop:  return acc;
}

int interpret_offsets(const unsigned char *code, int acc)
{
    static const int ops[] = {&&add - &&add, &&sub - &&add, &&twice - &&add, &&neg - &&add, &&call - &&add, &&stop - &&add};
    for (;;) {
        goto *(&&add + ops[*code++ % 6]);
add:    acc += *code++; continue;
sub:    acc -= *code++; continue;
twice:  acc *= 2; continue;
neg:    acc = -acc; continue;
call:   acc += rand(); continue;
stop:   return acc;
    }
}

int both(unsigned x, const unsigned char *code, int acc)
{
    static const int ops[] = {&&a - &&a, &&b - &&a, &&c - &&a, &&d - &&a};
    switch (x) {
#define X(n, k) case n: acc += k * rand(); break;
        CASES(X)
#undef X
    }
    goto *(&&a + ops[*code & 3]);
a:  return acc + 1;
b:  return acc * rand();
c:  return acc - 9;
d:  return (int)(x * 7);
}

void duff(char *to, const char *from, int n)
{
    int rounds = (n + 7) / 8;
    switch (n % 8) {
    case 0: do { *to++ = *from++; __attribute__((fallthrough));
    case 7: *to++ = *from++; __attribute__((fallthrough));
    case 6: *to++ = *from++; __attribute__((fallthrough));
    case 5: *to++ = *from++; __attribute__((fallthrough));
    case 4: *to++ = *from++; __attribute__((fallthrough));
    case 3: *to++ = *from++; __attribute__((fallthrough));
    case 2: *to++ = *from++; __attribute__((fallthrough));
    case 1: *to++ = *from++;
            } while (--rounds > 0);
    }
}

int main(int argc, char **argv)
{
    int p[16] = {0};
    unsigned char code[32] = {0, 1, 2, 3, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5};
    for (int i = 0; i < 20; i++) {
        sink += leaf_switch(i, argc, 2) + fallthrough(i, 1) + with_frame(i % 13, p, i) + tail_calls(i, 3) + call_array(i, 4);
        leaf_void(i, p);
        sink += state_machine(code, 16) + interpret(code, i) + interpret_offsets(code, i) + both(i, code, 3);
        duff((char *)p, argv[0], i % 9 + 1);
    }
    return sink == 42;
}
