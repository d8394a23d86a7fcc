// For cc, not for the go command, which takes a .c file in a package for cgo.

/* Denormal floats: what a filter leaves of silence is so small that the processor takes a hundred times as long for it. */
#include "server.h"

enum { SAMPLES = 4096 };

FN static float filter_band(float *p, float state, float a)
{
    for (unsigned i = 0; i < SAMPLES; i++) {
        state = state * a + p[i];
        p[i] = state;
    }
    return state;
}

FN static void mix_voices(struct request *r)
{
    static __thread float samples[SAMPLES];
    float loud = r->odd ? 1e-39f : 0.5f;
    for (unsigned band = 0; band < 24; band++) {
        for (unsigned i = 0; i < SAMPLES; i++)
            samples[i] = loud * (float)(1 + (i & 7));
        r->seed ^= (uint64_t)(filter_band(samples, loud, 0.5f) * 1000) * 2;
    }
}

FN static void encode_audio(struct request *r)
{
    parse_request(r);
    mix_voices(r);
    render_reply(r);
}

int main(int argc, char **argv) { return serve(argc, argv, &(struct server){.handle = encode_audio, .every_ms = 300, .pause_us = 1000, .slow_ms = 3}); }
