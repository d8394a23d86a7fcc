// A program with very many mappings of a file whose path is as long as paths can be and
// all newlines, which /proc/PID/maps escapes. Arguments: a folder to work in, the number
// of mappings. Its command line and its name are hostile, too.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char name[251];
	long n, made = 0;

	if (argc < 3 || chdir(argv[1]) != 0)
		return 2;
	n = atol(argv[2]);
	memset(name, '\n', sizeof name - 1);
	name[sizeof name - 1] = 0;
	for (int depth = 0; depth < 15; depth++) {
		if (mkdir(name, 0755) != 0 && errno != EEXIST)
			return 3;
		if (chdir(name) != 0)
			return 4;
	}
	int fd = open("file", O_RDWR | O_CREAT, 0644);
	if (fd < 0 || ftruncate(fd, 4096) != 0)
		return 5;
	// Each is a mapping of its own, as the same page follows the same page.
	for (; made < n; made++)
		if (mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
			break;
	// The command line is any memory that we say.
	size_t size = 1ul << 30;
	char *args = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct prctl_mm_map map = { 0 };
	FILE *stat = fopen("/proc/self/stat", "r");
	char line[4096];
	if (args != MAP_FAILED && stat && fgets(line, sizeof line, stat)) {
		unsigned long f[64] = { 0 };
		char *at = strrchr(line, ')') + 2;
		int k = 3;
		for (char *s = strtok(at, " "); s && k < 60; s = strtok(NULL, " "))
			f[k++] = strtoul(s, NULL, 10);
		map.start_code = f[26], map.end_code = f[27], map.start_stack = f[28];
		map.start_data = f[45], map.end_data = f[46], map.start_brk = f[47];
		map.brk = (unsigned long)sbrk(0);
		map.arg_start = (unsigned long)args, map.arg_end = (unsigned long)args + size;
		map.env_start = f[50], map.env_end = f[51];
		map.exe_fd = -1;
		args[0] = 'x';
		if (prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0) != 0)
			fprintf(stderr, "PR_SET_MM_MAP: %s\n", strerror(errno));
	}
	prctl(PR_SET_NAME, "\n) R 1 1\033[2J");
	printf("ready\n%ld\n", made);
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
