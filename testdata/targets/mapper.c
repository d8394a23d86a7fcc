// A server that maps what its clients send, as Wayland's wl_shm does: maps the descriptor that its first argument names, whole, as its
// second says ("r", "rw", "rx", each shared), says where, and ends at a line on its standard input. Its own code is read once more at the
// end: it says whether that is as it was.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

__attribute__((noinline)) int victim(int n) { return n * 7 + 1; }

static unsigned long sum(const volatile unsigned char *at, size_t n) {
    unsigned long s = 0;
    for (size_t i = 0; i < n; i++) s = s * 31 + at[i];
    return s;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    int fd = atoi(argv[1]), prot = 0;
    if (strchr(argv[2], 'r')) prot |= PROT_READ;
    if (strchr(argv[2], 'w')) prot |= PROT_WRITE;
    if (strchr(argv[2], 'x')) prot |= PROT_EXEC;
    struct stat st;
    if (fstat(fd, &st)) return 3;
    void *at = mmap(0, st.st_size, prot, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return 4;
    unsigned long before = sum((void *)(uintptr_t)victim, 16);
    printf("%p %p\n", at, (void *)(uintptr_t)victim);
    fflush(stdout);
    char line[16];
    if (!fgets(line, sizeof line, stdin)) return 5;
    volatile unsigned char touch = *(volatile unsigned char *)at; // it is still mapped
    (void)touch;
    puts(sum((void *)(uintptr_t)victim, 16) == before && victim(2) == 15 ? "unchanged" : "changed");
    return 0;
}
