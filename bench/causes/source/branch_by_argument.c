// For cc, not for the go command, which takes a .c file in a package for cgo.

/* Another branch by an argument: one format is drawn, all others are printed. */
#include "server.h"

FN static void draw_glyph(struct request *r, unsigned i) { r->seed ^= mix(r->text, 200, 60 + i % 7) | 1; }

FN static void draw_page(struct request *r, unsigned page)
{
    for (unsigned i = 0; i < 120; i++)
        draw_glyph(r, page + i);
}

FN static void format_pdf(struct request *r)
{
    for (unsigned page = 0; page < 6; page++)
        draw_page(r, page);
}

FN static void format_text(struct request *r) { mix(r->text, 200, 60 + (unsigned)(uniform(&r->seed) * 60)); }

FN static void format_report(struct request *r, int format)
{
    if (format == 'p')
        format_pdf(r);
    else
        format_text(r);
}

FN static void export_report(struct request *r)
{
    parse_request(r);
    format_report(r, r->odd ? 'p' : 't');
    render_reply(r);
}

int main(int argc, char **argv) { return serve(argc, argv, &(struct server){.handle = export_report, .every_ms = 300, .slow_ms = 6}); }
