// Two programs that talk: "couple db SOCKET" answers, "couple web SOCKET" asks. A line "N MS" on web's stdin makes it handle N requests,
// for the last of which db takes so many milliseconds; then it prints "done K.", the number of lines.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define TRACED __attribute__((noinline, noclone))

TRACED int query(int ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
	if (ms > 0)
		nanosleep(&t, 0);
	return ms + 1;
}

TRACED int ask(int fd, int ms)
{
	int answer;
	if (write(fd, &ms, sizeof ms) != sizeof ms || read(fd, &answer, sizeof answer) != sizeof answer)
		exit(1);
	return answer;
}

TRACED int handle(int fd, int ms)
{
	int answer = ask(fd, ms);
	for (volatile int i = 0; i < 100; i++)
		answer += i;
	return answer;
}

// Of db alone, and of web alone.
TRACED int only_db(int n) { return n > 1 ? n * query(0) : n; }
TRACED int only_web(int n) { return n > 1 ? n * 3 + rand() : n; }

static int db(const struct sockaddr_un *a)
{
	int listening = socket(AF_UNIX, SOCK_STREAM, 0), ms;
	if (bind(listening, (const struct sockaddr *)a, sizeof *a) || listen(listening, 1))
		return perror("bind"), 1;
	puts("ready");
	fflush(stdout);
	int fd = accept(listening, 0, 0);
	while (read(fd, &ms, sizeof ms) == sizeof ms) {
		int answer = query(ms) + only_db(1);
		if (write(fd, &answer, sizeof answer) != sizeof answer)
			break;
	}
	pause(); // until the test has seen to it
	return 0;
}

static int web(const struct sockaddr_un *a)
{
	char line[100];
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), n, ms, done = 0;
	if (connect(fd, (const struct sockaddr *)a, sizeof *a))
		return perror("connect"), 1;
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin) && sscanf(line, "%d %d", &n, &ms) == 2) {
		for (int i = 1; i <= n; i++)
			handle(fd, i == n ? ms : 0);
		printf("done %d.\n", ++done + 0 * only_web(1));
		fflush(stdout);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	if (argc < 3 || strlen(argv[2]) >= sizeof a.sun_path)
		return 2;
	strcpy(a.sun_path, argv[2]);
	return strcmp(argv[1], "db") == 0 ? db(&a) : web(&a);
}
