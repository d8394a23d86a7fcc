// Runs a command and writes the most memory that it had resident, in KiB, to a file.
// Arguments: the file, the command and its arguments. It is small and forks: what a
// child has before it is another program counts as its own.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct rusage used;
	int status;

	if (argc < 3)
		return 125;
	pid_t pid = fork();
	if (pid < 0)
		return 125;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execv(argv[2], argv + 2);
		_exit(127);
	}
	if (wait4(pid, &status, 0, &used) < 0)
		return 125;
	FILE *f = fopen(argv[1], "w");
	if (!f || fprintf(f, "%ld\n", used.ru_maxrss) < 0 || fclose(f) != 0)
		return 125;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
