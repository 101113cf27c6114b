// frugal: a program that is careful with its memory, or with what it may do. It is told by its
// argument what to do at once, and by each line to call work a hundred times; "lock" has it lock
// all its memory before. Should the kernel find it more memory than it has use for, it ends.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

__attribute__((noinline)) uint64_t work(uint64_t x) {
	for (int i = 0; i < 8; i++)
		x = x * 6364136223846793005ull + 1442695040888963407ull;
	__asm__ volatile("");
	return x;
}

static void *watch(void *unused) {
	const long most = 1 << 15; // pages
	for (;; usleep(1000)) {
		char text[100] = "";
		long size, resident;
		int f = open("/proc/self/statm", O_RDONLY); // it maps nothing itself
		if (f < 0 || read(f, text, sizeof text - 1) < 0 || close(f))
			_exit(4);
		if (sscanf(text, "%ld %ld", &size, &resident) == 2 && resident > most) {
			int n = sprintf(text, "%ld pages\n", resident);
			_exit(write(1, text, n) == n ? 3 : 4);
		}
	}
	return unused;
}

int main(int argc, char **argv) {
	char line[16];
	const char *careful = argc > 1 ? argv[1] : "";
	const struct rlimit limit = {4l << 30, 4l << 30};
	uint64_t sum = 0;
	pthread_t t;
	if (!strcmp(careful, "timeless"))
		prctl(PR_SET_TSC, PR_TSC_SIGSEGV); // also for threads that it starts
	pthread_create(&t, 0, watch, 0);
	if (!strcmp(careful, "limited"))
		setrlimit(RLIMIT_AS, &limit);
	if (!strcmp(careful, "locking"))
		mlockall(MCL_FUTURE); // nothing is locked yet
	char text[64];
	int n = sprintf(text, "ready %p\n", (void *)work);
	if (write(1, text, n) != n)
		return 1;
	while (fgets(line, sizeof line, stdin)) {
		if (!strcmp(line, "lock\n") && mlockall(MCL_CURRENT | MCL_FUTURE))
			return 2;
		for (int i = 0; i < 100; i++)
			sum += work(sum + i);
		printf("sum %lx\n", sum);
		fflush(stdout);
	}
	return 0;
}
