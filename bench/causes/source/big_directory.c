// For cc, not for the go command, which takes a .c file in a package for cgo.

/* A large directory: one user has ten thousand files, and each of them is looked at. */
#include "server.h"
#include <dirent.h>
#include <sys/stat.h>

static void make_files(const char *dir, unsigned n)
{
    char name[64];
    mkdir(dir, 0700);
    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%s/%u", dir, i);
        int fd = open(name, O_WRONLY | O_CREAT, 0600);
        if (fd < 0)
            die(name);
        close(fd);
    }
}

FN static unsigned describe_file(const char *dir, const char *file)
{
    char name[320];
    struct stat s;
    snprintf(name, sizeof name, "%s/%s", dir, file);
    return stat(name, &s) == 0 ? (unsigned)s.st_mtime : 0;
}

FN static unsigned list_directory(const char *dir)
{
    unsigned sum = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        sum += describe_file(dir, e->d_name);
    if (d != NULL)
        closedir(d);
    return sum;
}

FN static void browse_files(struct request *r)
{
    parse_request(r);
    r->seed ^= list_directory(r->odd ? "large" : r->id % 2 ? "small" : "smaller") | 1;
    render_reply(r);
}

int main(int argc, char **argv)
{
    make_files("large", 6000);
    make_files("small", 30);
    make_files("smaller", 20);
    return serve(argc, argv, &(struct server){.handle = browse_files, .every_ms = 300, .slow_ms = 3});
}
