// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A slow callee of a callback: one of the observers of each row does far more for some rows. */
#include "server.h"

typedef void observer(struct request *, unsigned row);

FN static void sign_row(struct request *r, unsigned row) { put_field(r, row, mix(r->text, 256, r->odd && row == 17 ? 60000 : 4)); }

FN static void count_row(struct request *r, unsigned row) { put_field(r, row, row); }
FN static void index_row(struct request *r, unsigned row) { put_field(r, row, mix(r->text, 100, 3)); }
FN static void audit_row(struct request *r, unsigned row) { sign_row(r, row); }

static observer *observers[] = {count_row, index_row, audit_row};

FN static void for_each_row(struct request *r)
{
    for (unsigned row = 0; row < 30; row++)
        for (unsigned i = 0; i < sizeof observers / sizeof observers[0]; i++)
            observers[i](r, row);
}

FN static void import_rows(struct request *r)
{
    parse_request(r);
    for_each_row(r);
    render_reply(r);
}

int main(int argc, char **argv) { return serve(argc, argv, &(struct server){.handle = import_rows, .every_ms = 300, .slow_ms = 8}); }
