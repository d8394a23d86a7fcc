// For cc, not for the go command, which takes a .c file in a package for cgo.

/* No cause at all: five stages, each with a small scatter of its own, and a pause among them. */
#include "server.h"

static unsigned jitter(struct request *r, unsigned n) { return n + (unsigned)(uniform(&r->seed) * n); }

FN static void authenticate(struct request *r) { mix(r->text, 200, jitter(r, 20)); }
FN static void load_account(struct request *r) { mix(r->text, 200, jitter(r, 60)); }
FN static void ask_ledger(struct request *r) { sleep_us(jitter(r, 60)); }
FN static void apply_fees(struct request *r) { mix(r->text, 200, jitter(r, 40)); }
FN static void write_audit(struct request *r) { mix(r->text, 200, jitter(r, 10)); }

FN static void transfer_money(struct request *r)
{
    parse_request(r);
    authenticate(r);
    load_account(r);
    ask_ledger(r);
    apply_fees(r);
    write_audit(r);
    render_reply(r);
}

int main(int argc, char **argv) { return serve(argc, argv, &(struct server){.handle = transfer_money, .threads = 2, .pause_us = 1000}); }
