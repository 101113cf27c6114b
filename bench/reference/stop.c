// stop PID: the cost of stopping and continuing a process one thread after the other, as
// any tracer does. At every odd line of its standard input it stops all threads, at every
// even line it continues them; each answer is the time that this took in nanoseconds. It
// ends with its input.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>

static pid_t threads[1024];
static int count;

static void fail(const char *what) {
	perror(what);
	exit(1);
}

static void seizeAll(const char *pid) {
	char path[64];
	snprintf(path, sizeof path, "/proc/%s/task", pid);
	DIR *d = opendir(path);
	if (!d)
		fail(path);
	for (struct dirent *e; (e = readdir(d)) && count < 1024;)
		if (atoi(e->d_name))
			threads[count++] = atoi(e->d_name);
	closedir(d);
	for (int i = 0; i < count; i++)
		if (ptrace(PTRACE_SEIZE, threads[i], 0, 0))
			fail("cannot attach to a thread");
}

static void stop(void) {
	int status;
	for (int i = 0; i < count; i++)
		ptrace(PTRACE_INTERRUPT, threads[i], 0, 0);
	for (int i = 0; i < count; i++)
		waitpid(threads[i], &status, __WALL);
}

static void goOn(void) {
	for (int i = 0; i < count; i++)
		ptrace(PTRACE_CONT, threads[i], 0, 0);
}

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

int main(int argc, char **argv) {
	char line[16];
	if (argc != 2)
		return 2;
	seizeAll(argv[1]);
	setvbuf(stdout, 0, _IOLBF, 0);
	for (int turn = 0; fgets(line, sizeof line, stdin); turn++) {
		int64_t begin = now();
		if (turn % 2)
			goOn();
		else
			stop();
		printf("%lld\n", (long long)(now() - begin));
	}
	return 0;
}
