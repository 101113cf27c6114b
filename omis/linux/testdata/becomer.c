// becomer: has threads that sleep; told so, it executes itself in place of all
// of them, says "again", and ends with its input.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *sleeper(void *arg) {
	for (;;)
		pause();
	return arg;
}

int main(int argc, char **argv) {
	if (argc > 1) {
		puts("again");
		fflush(stdout);
		return getchar() != EOF;
	}
	for (int i = 0; i < 3; i++) {
		pthread_t t;
		pthread_create(&t, 0, sleeper, 0);
	}
	puts("ready 0");
	fflush(stdout);
	getchar();
	execl("/proc/self/exe", argv[0], "again", (char *)0);
	return 1;
}
