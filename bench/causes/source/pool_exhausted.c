// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A thread pool that is exhausted: the job of a request waits in the queue until a thread is done with thumbnails. */
#include "server.h"

enum { QUEUE = 64 };
struct job {
    void (*run)(struct job *);
    struct request *r;
    int done;
};
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pool_work = PTHREAD_COND_INITIALIZER, pool_done = PTHREAD_COND_INITIALIZER;
static struct job *queue[QUEUE];
static unsigned head, tail;

FN static void submit_job(struct job *j)
{
    pthread_mutex_lock(&pool_lock);
    queue[tail++ % QUEUE] = j;
    pthread_cond_signal(&pool_work);
    pthread_mutex_unlock(&pool_lock);
}

FN static void await_job(struct job *j)
{
    pthread_mutex_lock(&pool_lock);
    while (!j->done)
        pthread_cond_wait(&pool_done, &pool_lock);
    pthread_mutex_unlock(&pool_lock);
}

FN static void encode_reply(struct job *j) { mix(j->r->text, 200, 60); }

FN static void make_thumbnail(struct job *j)
{
    static char image[512];
    for (unsigned row = 0; row < 60; row++)
        mix(image, sizeof image, 1200);
    (void)j;
}

static void pool_thread(void)
{
    pthread_mutex_lock(&pool_lock);
    while (serving) {
        if (head == tail) {
            pthread_cond_wait(&pool_work, &pool_lock);
            continue;
        }
        struct job *j = queue[head++ % QUEUE];
        pthread_mutex_unlock(&pool_lock);
        j->run(j);
        pthread_mutex_lock(&pool_lock);
        j->done = 1;
        pthread_cond_broadcast(&pool_done);
    }
    pthread_mutex_unlock(&pool_lock);
}

static void uploads(void)
{
    static struct job images[2];
    for (; serving; pause_ms(300))
        for (int i = 0; i < 2; i++) {
            images[i] = (struct job){.run = make_thumbnail};
            submit_job(&images[i]);
        }
}

FN static void answer_call(struct request *r)
{
    struct job j = {.run = encode_reply, .r = r};
    parse_request(r);
    submit_job(&j);
    await_job(&j);
    render_reply(r);
}

int main(int argc, char **argv)
{
    background("pool-0", pool_thread);
    background("pool-1", pool_thread);
    background("uploads", uploads);
    return serve(argc, argv, &(struct server){.handle = answer_call, .slow_ms = 10});
}
