// family fork|vfork|spawn|exec ROUNDS: the process and its children call work; a child's calls are
// right when it exits with 0. "exec" executes the program again, ROUNDS times.
#define _GNU_SOURCE
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

__attribute__((noinline)) uint64_t work(uint64_t x) {
	for (int i = 0; i < 8; i++)
		x = x * 6364136223846793005ull + 1442695040888963407ull;
	__asm__ volatile(""); // or else the compiler calls it once for all
	return x;
}

static uint64_t loop(int n) {
	uint64_t sum = 0;
	for (int i = 0; i < n; i++)
		sum += work(sum ^ i);
	return sum;
}

static int child(const char *mode, uint64_t right) {
	pid_t pid;
	char *args[] = {"true", 0};
	if (!strcmp(mode, "spawn")) {
		if (posix_spawn(&pid, "/bin/true", 0, 0, args, environ))
			return 1;
	} else if (!strcmp(mode, "vfork")) {
		pid = vfork();
		if (pid == 0) {
			if (loop(100) != right)
				_exit(3);
			execv("/bin/true", args);
			_exit(4);
		}
	} else {
		pid = fork();
		if (pid == 0)
			_exit(loop(100) != right);
	}
	int st;
	return waitpid(pid, &st, 0) != pid || st != 0;
}

int main(int argc, char **argv) {
	int rounds = atoi(argv[2]), bad = 0;
	if (argc == 3) {
		printf("ready %p\n", (void *)work);
		fflush(stdout);
		getchar();
	}
	uint64_t right = loop(100);
	if (!strcmp(argv[1], "exec")) {
		if (rounds > 0) {
			char left[16];
			sprintf(left, "%d", rounds - 1);
			execl("/proc/self/exe", argv[0], "exec", left, "again", (char *)0);
			return 1;
		}
	} else
		for (int i = 0; i < rounds; i++)
			bad += child(argv[1], right) + (loop(100) != right);
	printf("bad %d\n", bad);
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
