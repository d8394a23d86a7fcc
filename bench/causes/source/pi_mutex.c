// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A lock with inheritance of priorities: waits go by another system call than those of others. */
#include "server.h"

static pthread_mutex_t mixer;

FN static void resample(unsigned n) { mix(&n, sizeof n, 900); }

FN static void load_effect(void)
{
    pthread_mutex_lock(&mixer);
    for (unsigned i = 0; i < 40; i++)
        resample(i);
    pthread_mutex_unlock(&mixer);
}

static void loader(void)
{
    while (serving) {
        pause_ms(300);
        load_effect();
    }
}

FN static void mix_channels(struct request *r)
{
    pthread_mutex_lock(&mixer);
    mix(r->text, 100, 6);
    pthread_mutex_unlock(&mixer);
}

FN static void play_buffer(struct request *r)
{
    parse_request(r);
    mix_channels(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    pthread_mutexattr_t how;
    pthread_mutexattr_init(&how);
    pthread_mutexattr_setprotocol(&how, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&mixer, &how);
    background("loader", loader);
    return serve(argc, argv, &(struct server){.handle = play_buffer, .slow_ms = 8});
}
