// watch PID: measures from outside when a stopped process continues. At each line of its
// standard input it prints "watching", and then the time in nanoseconds until no thread
// of the process was stopped by a tracer any more, according to /proc. It asks for
// real-time priority, so that it does not wait for a processor behind the threads it
// watches.
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int files[1024], count;

static void fail(const char *what) {
	perror(what);
	exit(1);
}

static void openAll(const char *pid) {
	char path[300];
	snprintf(path, sizeof path, "/proc/%s/task", pid);
	DIR *d = opendir(path);
	if (!d)
		fail(path);
	for (struct dirent *e; (e = readdir(d)) && count < 1024;) {
		if (!atoi(e->d_name))
			continue;
		snprintf(path, sizeof path, "/proc/%s/task/%s/stat", pid, e->d_name);
		if ((files[count++] = open(path, O_RDONLY)) < 0)
			fail(path);
	}
	closedir(d);
}

static int isHeld(int file) {
	char text[512];
	ssize_t n = pread(file, text, sizeof text - 1, 0);
	text[n > 0 ? n : 0] = 0;
	char *end = strrchr(text, ')');
	return end && !strncmp(end, ") t", 3);
}

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

int main(int argc, char **argv) {
	const struct timespec interval = {0, 100000};
	struct sched_param first = {2};
	char line[16];
	if (argc != 2)
		return 2;
	openAll(argv[1]);
	sched_setscheduler(0, SCHED_FIFO, &first);
	setvbuf(stdout, 0, _IOLBF, 0);
	while (fgets(line, sizeof line, stdin)) {
		int64_t begin = now();
		puts("watching");
		for (int i = 0; i < count; i++)
			while (isHeld(files[i]))
				nanosleep(&interval, 0);
		printf("%lld\n", (long long)(now() - begin));
	}
	return 0;
}
