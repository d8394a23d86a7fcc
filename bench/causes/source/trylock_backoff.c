// For cc, not for the go command, which takes a .c file in a package for cgo.

/* Two locks taken in any order: who can't have the second lets the first go, and sleeps before it tries again. */
#include "server.h"

static pthread_mutex_t from = PTHREAD_MUTEX_INITIALIZER, to = PTHREAD_MUTEX_INITIALIZER;

FN static void wait_a_little(void) { sleep_us(1000); }

FN static void lock_both(void)
{
    for (;;) {
        pthread_mutex_lock(&from);
        if (pthread_mutex_trylock(&to) == 0)
            return;
        pthread_mutex_unlock(&from);
        wait_a_little();
    }
}

FN static void close_books(void)
{
    pthread_mutex_lock(&to);
    sleep_us(20000);
    pthread_mutex_unlock(&to);
}

static void accountant(void)
{
    while (serving) {
        pause_ms(300);
        close_books();
    }
}

FN static void move_money(struct request *r)
{
    parse_request(r);
    lock_both();
    mix(r->text, 100, 4);
    pthread_mutex_unlock(&to);
    pthread_mutex_unlock(&from);
    render_reply(r);
}

int main(int argc, char **argv)
{
    background("accountant", accountant);
    return serve(argc, argv, &(struct server){.handle = move_money, .slow_ms = 8});
}
