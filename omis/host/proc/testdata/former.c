// former: two threads work in user and in kernel mode, and one of them ends. Then it
// prints "worked" and waits to be killed.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void *work(void *none) {
	struct timespec t;
	do {
		for (volatile int i = 0; i < 100000; i++)
			;
		for (int i = 0; i < 1000; i++)
			syscall(SYS_getppid);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	} while (t.tv_sec == 0 && t.tv_nsec < 100000000);
	return none;
}

int main(void) {
	pthread_t other;
	if (pthread_create(&other, 0, work, 0) || pthread_join(other, 0))
		return 1;
	work(0);
	puts("worked");
	fflush(stdout);
	for (;;)
		pause();
}
