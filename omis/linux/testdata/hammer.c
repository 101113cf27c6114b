// hammer THREADS CALLS [block]: every thread calls work CALLS times after a line came in on
// standard input; then the sum of what work returned is printed, and the end
// of the input awaited. With "block"
// every second thread blocks all signals.
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long calls;
static int block;
static pthread_barrier_t begin;

__attribute__((noinline)) uint64_t work(uint64_t x) {
	for (int i = 0; i < 8; i++)
		x = x * 6364136223846793005ull + 1442695040888963407ull;
	return x;
}

static void *run(void *arg) {
	uint64_t sum = 0, id = (uint64_t)arg;
	if (block && id % 2) {
		sigset_t all;
		sigfillset(&all);
		pthread_sigmask(SIG_BLOCK, &all, 0);
	}
	pthread_barrier_wait(&begin);
	for (long i = 0; i < calls; i++)
		sum += work(sum ^ id ^ i);
	return (void *)sum;
}

int main(int argc, char **argv) {
	int n = atoi(argv[1]);
	calls = atol(argv[2]);
	block = argc > 3 && !strcmp(argv[3], "block");
	pthread_t *t = calloc(n, sizeof *t);
	pthread_barrier_init(&begin, 0, n + 1);
	for (long i = 0; i < n; i++)
		pthread_create(&t[i], 0, run, (void *)i);
	printf("ready %p\n", (void *)work);
	fflush(stdout);
	getchar();
	pthread_barrier_wait(&begin);
	uint64_t sum = 0;
	for (int i = 0; i < n; i++) {
		void *r;
		pthread_join(t[i], &r);
		sum += (uint64_t)r;
	}
	printf("sum %lx\n", sum);
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
