// For cc, not for the go command, which takes a .c file in a package for cgo.

/* Sleep in a retry loop: a busy resource is tried again, with longer and longer pauses. */
#include "server.h"

FN static void back_off(unsigned attempt) { sleep_us(2000u << attempt); }

FN static int try_reserve(struct request *r, unsigned attempt)
{
    mix(r->text, 100, 5);
    return !r->odd || attempt >= 4;
}

FN static void reserve_seat(struct request *r)
{
    for (unsigned attempt = 0; !try_reserve(r, attempt); attempt++)
        back_off(attempt);
}

FN static void book_seat(struct request *r)
{
    parse_request(r);
    reserve_seat(r);
    render_reply(r);
}

int main(int argc, char **argv) { return serve(argc, argv, &(struct server){.handle = book_seat, .every_ms = 300, .slow_ms = 15}); }
