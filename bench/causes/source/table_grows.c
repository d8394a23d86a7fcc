// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A table that grows: the insertion that fills it moves all entries. */
#include "server.h"

static uint64_t *slots;
static unsigned capacity = 1u << 18, used;
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

FN static void place_entry(uint64_t *in, unsigned size, uint64_t key)
{
    unsigned i = (unsigned)(key * 0x9e3779b97f4a7c15u >> 32) % size;
    while (in[i] != 0)
        i = i + 1 == size ? 0 : i + 1;
    in[i] = key;
}

FN static void move_entries(uint64_t *to, unsigned size)
{
    for (unsigned i = 0; i < capacity; i++)
        if (slots[i] != 0)
            place_entry(to, size, slots[i]);
}

FN static void grow_table(void)
{
    unsigned size = capacity + 64; /* little by little, to save memory */
    uint64_t *to = calloc(size, sizeof *to);
    move_entries(to, size);
    free(slots);
    slots = to;
    capacity = size;
}

FN static void insert_session(struct request *r)
{
    pthread_mutex_lock(&table_lock);
    if (r->odd)
        grow_table();
    place_entry(slots, capacity, draw(&r->seed) | 1);
    used++;
    pthread_mutex_unlock(&table_lock);
}

FN static void open_session(struct request *r)
{
    parse_request(r);
    insert_session(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    uint64_t seed = 5;
    slots = calloc(capacity, sizeof *slots);
    for (; used < capacity / 2; used++)
        place_entry(slots, capacity, draw(&seed) | 1);
    return serve(argc, argv, &(struct server){.handle = open_session, .threads = 1, .every_ms = 350, .slow_ms = 3});
}
