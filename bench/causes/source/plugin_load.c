// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A plugin loaded on first use: an image of a rare format has its decoder loaded, whose constructor makes tables. */
#include "server.h"
#include <dlfcn.h>

enum { PLUGINS = 80 };
static const char plugin[] = "static unsigned table[1 << 20];\n"
                             "__attribute__((constructor)) static void make_tables(void)\n"
                             "{\n"
                             "    for (unsigned i = 0; i < 1 << 20; i++) {\n"
                             "        unsigned v = i;\n"
                             "        for (int k = 0; k < 8; k++)\n"
                             "            v = v & 1 ? v >> 1 ^ 0xedb88320u : v >> 1;\n"
                             "        table[i] = v;\n"
                             "    }\n"
                             "}\n"
                             "unsigned decode(unsigned v) { return table[v & 0xfffff]; }\n";

FN static uint32_t (*load_plugin(const char *name))(unsigned)
{
    void *lib = dlopen(name, RTLD_NOW);
    if (lib == NULL)
        die(name);
    void *f = dlsym(lib, "decode");
    uint32_t (*decode)(unsigned);
    memcpy(&decode, &f, sizeof f);
    return decode;
}

FN static void decode_image(struct request *r)
{
    static unsigned used;
    if (r->odd && used < PLUGINS) {
        char name[64];
        snprintf(name, sizeof name, "./plugin-%u.so", __atomic_fetch_add(&used, 1, __ATOMIC_RELAXED));
        r->seed ^= load_plugin(name)((unsigned)r->seed) * 2;
    }
    mix(r->text, 200, 100);
}

FN static void show_image(struct request *r)
{
    parse_request(r);
    decode_image(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    FILE *f = fopen("plugin.c", "w");
    if (f == NULL || fputs(plugin, f) < 0 || fclose(f) != 0)
        die("plugin.c");
    if (system("gcc -O2 -shared -fPIC -o plugin-0.so plugin.c && for i in $(seq 79); do cp plugin-0.so plugin-$i.so; done") != 0)
        die("no plugin");
    return serve(argc, argv, &(struct server){.handle = show_image, .every_ms = 300, .slow_ms = 4});
}
