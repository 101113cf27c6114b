// waits reads lines "wait N", "notify N" and "allocate N" on standard input. It waits N times for 2 ms
// for a condition that no thread signals; or it notifies another thread N times; or it allocates N
// times by malloc and by calloc, and frees these. It answers each line with the time that the waits took by its own clock, in nanoseconds.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static volatile int notified;

static long now(clockid_t clock) {
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static long waitFor(int n) {
	long begin = now(CLOCK_MONOTONIC);
	pthread_mutex_lock(&mutex);
	for (int i = 0; i < n; i++) {
		long until = now(CLOCK_REALTIME) + 2000000;
		struct timespec t = {until / 1000000000, until % 1000000000};
		pthread_cond_timedwait(&condition, &mutex, &t);
	}
	pthread_mutex_unlock(&mutex);
	return now(CLOCK_MONOTONIC) - begin;
}

// other waits without a limit, once for each line.
static void *other(void *unused) {
	pthread_mutex_lock(&mutex);
	for (;;) {
		while (!notified)
			pthread_cond_wait(&condition, &mutex);
		notified = 0;
	}
	return unused;
}

static void allocate(int n) {
	for (int i = 0; i < n; i++) {
		char *volatile a = malloc(100), *volatile b = calloc(10, 10);
		a = realloc(a, 200);
		free(a), free(b);
	}
}

int main(void) {
	pthread_t t;
	char what[20], in[1 << 12], out[1 << 12];
	int n;
	setvbuf(stdin, in, _IOFBF, sizeof in), setvbuf(stdout, out, _IOFBF, sizeof out);
	pthread_create(&t, 0, other, 0);
	printf("ready\n");
	fflush(stdout);
	while (scanf("%19s %d", what, &n) == 2) {
		long took = 0;
		if (!strcmp(what, "wait"))
			took = waitFor(n);
		else if (!strcmp(what, "notify"))
			for (int i = 0; i < n; i++) {
				pthread_mutex_lock(&mutex);
				notified = 1;
				pthread_cond_signal(&condition);
				pthread_mutex_unlock(&mutex);
				while (notified)
					usleep(1000);
			}
		else
			allocate(n);
		printf("%ld\n", took);
		fflush(stdout);
	}
}
