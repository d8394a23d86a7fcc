// For cc, not for the go command, which takes a .c file in a package for cgo.

/* Two steps away: a request waits for a thread, which waits for an answer of another process. */
#include "server.h"
#include <sys/socket.h>

static pthread_mutex_t key_lock = PTHREAD_MUTEX_INITIALIZER;
static int keys[2];

static void key_server(void)
{
    char c;
    for (unsigned n = 0; read(keys[1], &c, 1) == 1; n++) {
        sleep_us(20000);
        if (write(keys[1], &c, 1) != 1)
            return;
    }
}

FN static void fetch_keys(void)
{
    char c = 'k';
    if (write(keys[0], &c, 1) != 1 || read(keys[0], &c, 1) != 1)
        die("keys");
}

FN static void rotate_keys(void)
{
    pthread_mutex_lock(&key_lock);
    fetch_keys();
    pthread_mutex_unlock(&key_lock);
}

static void rotator(void)
{
    for (; serving; pause_ms(300))
        rotate_keys();
}

FN static void sign_token(struct request *r)
{
    pthread_mutex_lock(&key_lock);
    mix(r->text, 200, 10);
    pthread_mutex_unlock(&key_lock);
}

FN static void log_in(struct request *r)
{
    parse_request(r);
    sign_token(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, keys) != 0)
        die("socketpair");
    child(key_server);
    background("rotator", rotator);
    return serve(argc, argv, &(struct server){.handle = log_in, .slow_ms = 8});
}
