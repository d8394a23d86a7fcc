// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A hash collision: the keys of a rare request all land in one bucket of its table. */
#include "server.h"

enum { BUCKETS = 1024 };
struct entry {
    struct entry *next;
    unsigned hash, value;
    char key[164];
};
struct table {
    struct entry *bucket[BUCKETS], entries[700];
    unsigned n;
};

/* Keys of one kind differ at their end only. */
FN static int key_equal(const struct entry *e, const char *key)
{
    unsigned i = 0;
    while (key[i] != 0 && e->key[i] == key[i])
        i++;
    return e->key[i] == key[i];
}

FN static struct entry *table_find(struct table *t, const char *key, unsigned hash)
{
    for (struct entry *e = t->bucket[hash % BUCKETS]; e != NULL; e = e->next)
        if (key_equal(e, key))
            return e;
    return NULL;
}

FN static void table_put(struct table *t, const char *key, unsigned hash, unsigned value)
{
    struct entry *e = table_find(t, key, hash);
    if (e == NULL) {
        e = &t->entries[t->n++];
        e->next = t->bucket[hash % BUCKETS];
        e->hash = hash;
        memcpy(e->key, key, sizeof e->key);
        t->bucket[hash % BUCKETS] = e;
    }
    e->value = value;
}

FN static void group_rows(struct request *r)
{
    struct table *t = calloc(1, sizeof *t);
    unsigned rows = r->odd ? 600 : 150 + (unsigned)(uniform(&r->seed) * 100);
    for (unsigned i = 0; i < rows; i++) {
        char key[164];
        memset(key, 'k', 160);
        memcpy(key + 160, (char[]){(char)('a' + i % 26), (char)('a' + i / 26 % 26), (char)('a' + i / 676), 0}, 4);
        unsigned hash = (i + r->id) * 2654435761u;
        table_put(t, key, r->odd ? r->id : hash ^ hash >> 15 ^ hash >> 22, i);
    }
    free(t);
}

FN static void answer_query(struct request *r)
{
    parse_request(r);
    group_rows(r);
    render_reply(r);
}

int main(int argc, char **argv) { return serve(argc, argv, &(struct server){.handle = answer_query, .every_ms = 300, .slow_ms = 8}); }
