// For cc, not for the go command, which takes a .c file in a package for cgo.

/* Input read byte by byte: a body without a length is read with one system call for each byte. */
#include "server.h"

static int body;

FN static int read_byte(off_t at)
{
    char c;
    return pread(body, &c, 1, at) == 1 ? c : -1;
}

FN static unsigned read_chunked(unsigned n)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += (unsigned)read_byte((off_t)i);
    return sum;
}

FN static unsigned read_sized(unsigned n)
{
    static __thread char block[40000];
    return pread(body, block, n, 0) > 0 ? mix(block, n, 10) : 0;
}

FN static void read_body(struct request *r)
{
    unsigned n = 10000 + (unsigned)(uniform(&r->seed) * 30000);
    r->seed ^= (r->odd ? read_chunked(n) : read_sized(n)) | 1;
}

FN static void accept_upload(struct request *r)
{
    parse_request(r);
    read_body(r);
    render_reply(r);
}

int main(int argc, char **argv)
{
    static char block[40000];
    body = open("body", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (write(body, block, sizeof block) < 0)
        die("body");
    return serve(argc, argv, &(struct server){.handle = accept_upload, .every_ms = 300, .slow_ms = 3});
}
