// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A lock held by another thread: the configuration is read anew under the lock that each request takes. */
#include "server.h"

static pthread_mutex_t config_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t config[64];

FN static uint32_t config_value(unsigned i)
{
    pthread_mutex_lock(&config_lock);
    uint32_t v = config[i % 64];
    pthread_mutex_unlock(&config_lock);
    return v;
}

FN static void parse_config_line(unsigned i) { config[i % 64] = mix(config, sizeof config, 800); }

FN static void refresh_config(void)
{
    pthread_mutex_lock(&config_lock);
    for (unsigned i = 0; i < 64; i++)
        parse_config_line(i);
    pthread_mutex_unlock(&config_lock);
}

static void refresher(void)
{
    for (; serving; pause_ms(300))
        refresh_config();
}

FN static void serve_page(struct request *r)
{
    unsigned n = parse_request(r);
    for (unsigned i = 0; i < n; i++)
        r->seed ^= config_value(i) | 1;
    render_reply(r);
}

int main(int argc, char **argv)
{
    background("refresher", refresher);
    return serve(argc, argv, &(struct server){.handle = serve_page, .slow_ms = 10});
}
