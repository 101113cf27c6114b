// signals own|plain|masked: two threads call work while the first sends them SIGUSR1 without end; with "own"
// the program has a handler for SIGTRAP and traps itself now and then; with "masked" its handler blocks
// all signals, as those of programs in Go do. Then, for each line that comes in, it says whether that
// one still blocks SIGTRAP.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static atomic_long traps, signals, stop;
static int own;

__attribute__((noinline)) uint64_t work(uint64_t x) {
	for (int i = 0; i < 8; i++)
		x = x * 6364136223846793005ull + 1442695040888963407ull;
	return x;
}

static void count(int sig) {
	if (sig == SIGTRAP)
		traps++;
	else
		signals += work(1) != 0;
}

static void *run(void *arg) {
	uint64_t sum = 0;
	for (int i = 0; i < 6000; i++) {
		sum += work(sum ^ i);
		if (own && i % 100 == 0)
			__asm__ volatile("int3");
		if (own && i % 100 == 50)
			raise(SIGTRAP);
	}
	return (void *)sum;
}

static atomic_long running = 2;

static void *shot(void *arg) {
	void *r = run(arg);
	while (signals < 50) // the shooter may get its processor late
		usleep(100);
	running--;
	while (!stop) // alive, so that its id is valid for the shooter
		usleep(1000);
	return r;
}

int main(int argc, char **argv) {
	pthread_t t[2];
	own = !strcmp(argv[1], "own");
	struct sigaction act = {.sa_handler = count, .sa_flags = SA_RESTART};
	if (!strcmp(argv[1], "masked"))
		sigfillset(&act.sa_mask);
	sigaction(SIGUSR1, &act, 0);
	if (own)
		signal(SIGTRAP, count);
	printf("ready %p\n", (void *)work);
	fflush(stdout);
	getchar();
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], 0, shot, 0);
	while (running) {
		pthread_kill(t[0], SIGUSR1);
		pthread_kill(t[1], SIGUSR1);
		usleep(50);
	}
	stop = 1;
	uint64_t sum = 0;
	for (int i = 0; i < 2; i++) {
		void *r;
		pthread_join(t[i], &r);
		sum += (uint64_t)r;
	}
	printf("sum %lx traps %ld\n", sum, (long)traps);
	fflush(stdout);
	for (int c; (c = getchar()) != EOF;) {
		if (c != '\n')
			continue;
		sigaction(SIGUSR1, 0, &act);
		printf("blocked %d\n", sigismember(&act.sa_mask, SIGTRAP));
		fflush(stdout);
	}
	return 0;
}
