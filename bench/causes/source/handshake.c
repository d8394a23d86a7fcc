// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A handshake that computes: a new client has no session yet, and powers of large numbers are taken for it. */
#include "server.h"

enum { LIMBS = 32 };
struct number {
    uint64_t limb[LIMBS];
};

FN static void mont_mul(struct number *a, const struct number *b)
{
    uint64_t t[2 * LIMBS] = {0};
    for (int i = 0; i < LIMBS; i++) {
        unsigned __int128 carry = 0;
        for (int k = 0; k < LIMBS; k++) {
            carry += (unsigned __int128)a->limb[i] * b->limb[k] + t[i + k];
            t[i + k] = (uint64_t)carry;
            carry >>= 64;
        }
        t[i + LIMBS] = (uint64_t)carry;
    }
    for (int i = 0; i < LIMBS; i++)
        a->limb[i] = t[i] ^ t[i + LIMBS];
}

FN static void mod_exp(struct number *a, unsigned bits)
{
    struct number base = *a;
    for (unsigned i = 0; i < bits; i++) {
        mont_mul(a, a);
        mont_mul(a, &base);
    }
}

FN static void agree_on_key(struct request *r)
{
    struct number n;
    for (int i = 0; i < LIMBS; i++)
        n.limb[i] = draw(&r->seed);
    mod_exp(&n, 2048);
    mod_exp(&n, 2048);
    r->seed ^= n.limb[0] | 1;
}

FN static void start_session(struct request *r)
{
    if (r->odd)
        agree_on_key(r);
    mix(r->text, 200, 30);
}

FN static void accept_client(struct request *r)
{
    parse_request(r);
    start_session(r);
    render_reply(r);
}

int main(int argc, char **argv) { return serve(argc, argv, &(struct server){.handle = accept_client, .every_ms = 300, .slow_ms = 5}); }
