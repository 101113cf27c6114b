// tally calls a function from the command "go" to the command "stop", in permanent threads and in
// threads that end soon, and answers each command with the number of calls so far. Tests compare
// probes with this number. At "nap 5" it sleeps for five milliseconds, and answers with the
// duration in nanoseconds by its own clock.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { threads = 2, brief = 50 };

static volatile int going;
static atomic_long calls, busy;
static volatile unsigned long sink;

__attribute__((noinline)) void work(unsigned long x) { sink = x * 3 + 1; }

__attribute__((noinline)) void nap(int ms) {
	usleep(ms * 1000);
	sink = ms; // prevents a tail call, which would end the function with a jump
}

static long timed(int ms) {
	struct timespec before, after;
	clock_gettime(CLOCK_MONOTONIC, &before);
	nap(ms);
	clock_gettime(CLOCK_MONOTONIC, &after);
	return (after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec;
}

void leaf(long n); // of leaf.f90

// some calls work n times.
static void some(int n) {
	for (int i = 0; i < n; i++) {
		work(i);
#ifdef FORTRAN
		leaf(i);
#endif
	}
	atomic_fetch_add(&calls, n);
}

static void *lasting(void *arg) {
	for (;;) {
		atomic_fetch_add(&busy, 1);
		if (going)
			some(100);
		atomic_fetch_sub(&busy, 1);
		usleep(going ? 100 : 1000);
	}
	return arg;
}

static void *passing(void *arg) {
	some(brief);
	return arg;
}

// crowd starts threads that end at once.
static void *crowd(void *arg) {
	for (;;) {
		atomic_fetch_add(&busy, 1);
		if (going) {
			pthread_t t;
			if (!pthread_create(&t, 0, passing, 0))
				pthread_join(t, 0);
		}
		atomic_fetch_sub(&busy, 1);
		usleep(2000);
	}
	return arg;
}

int main(void) {
	char line[16];
	int ms;
	pthread_t t;
	for (int i = 0; i < threads; i++)
		pthread_create(&t, 0, lasting, 0);
	pthread_create(&t, 0, crowd, 0);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		if (sscanf(line, "nap %d", &ms) == 1) {
			printf("%ld\n", timed(ms));
			fflush(stdout);
			continue;
		}
		going = !strcmp(line, "go\n");
		while (!going && atomic_load(&busy))
			usleep(100);
		printf("%ld\n", atomic_load(&calls));
		fflush(stdout);
	}
	return 0;
}
